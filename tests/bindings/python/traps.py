"""traps.py NAME URL - one thing that may go wrong with the Python binding; prints what came of it."""
import asyncio
import copy
import gc
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from functools import partial

import holdfast

url = sys.argv[2]


def interrupted():
    """Ctrl-C in a wait; python.t holds the lock, and reads how long it took from the signal on."""
    sent = []

    def handler(*_):
        sent.append(time.monotonic())
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, handler)
    store = holdfast.open(url)
    try:
        with store.lock('held', wait=float('inf')):
            print('taken')
    except KeyboardInterrupt:
        print('interrupted', 'soon' if time.monotonic() - sent[0] < 0.1 else 'late', flush=True)


def undisturbed():
    """A signal whose handler does not raise leaves the wait alone."""
    heard = []
    signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    with holdfast.open(url) as store:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        try:
            store.lock('held', wait=0.8).acquire()
        except holdfast.Busy:
            print('busy after the signal', len(heard))


def exits():
    store = holdfast.open(url)
    lease = store.lock('left behind', ttl=60).acquire()
    print('held', lease.token)
    if len(sys.argv) > 3:
        raise RuntimeError('on purpose')


def waits_at_exit():
    """A thread that still waits does not keep the interpreter from ending."""
    store = holdfast.open(url)

    def wait():
        try:
            store.lock('held', wait=float('inf')).acquire()
        except holdfast.Cancelled:
            print('cancelled', flush=True)

    threading.Thread(target=wait, daemon=True).start()
    while not store._core.cancels:
        time.sleep(0.01)
    time.sleep(0.1)


async def _crowd(store, count):
    turns, most = [], 0

    async def one(n):
        nonlocal most
        async with store.lock('crowd', wait=60) as lease:
            turns.append(lease.token)
            most = max(most, lease.token)

    async with store.lock('crowd'):
        tasks = [asyncio.create_task(one(n)) for n in range(count)]
        await asyncio.sleep(1)
        for task in tasks[::2]:
            task.cancel()
        began = time.monotonic()
        done = await asyncio.gather(*tasks[::2], return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done), done[:3]
        left = time.monotonic() - began
    await asyncio.gather(*tasks[1::2])
    assert len(turns) == count // 2 and turns == sorted(set(turns))
    return left


def crowd():
    """A thousand tasks wait; half of them are cancelled, the others all have their turn."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10000), hard))
    with holdfast.open(url) as store:
        asyncio.run(_crowd(store, 1000))
    print('turns', 500)


def fork():
    store = holdfast.open(url)
    lease = store.lock('forked').acquire()
    child = os.fork()
    if child == 0:
        seen = []
        for what in (store.lock('other').acquire, lease.check, lease.renew, lambda: store.get('forked', 'key')):
            try:
                what()
                seen.append('done')
            except holdfast.Invalid as error:
                seen.append('fork' in str(error))
        print('child', seen, lease.remaining, flush=True)
        sys.exit(0)  # with all that happens then
    os.waitpid(child, 0)
    lease.check()
    lease.release()
    print('parent still had it')


def collected():
    with warnings.catch_warnings(record=True) as caught, holdfast.open(url) as store:
        warnings.simplefilter('always')
        store.lock('dropped').acquire()
        gc.collect()
        store.lock('dropped', wait=10).acquire().release()
        print([f'{one.category.__name__}: {"never released" in str(one.message)}' for one in caught])


def threads():
    """Many threads take one lock; others look at a lease while it is released."""
    store, count = holdfast.open(url), [0]

    def work():
        for _ in range(20):
            with store.lock('threads', wait=60) as lease:
                before = count[0]
                lease.check()
                count[0] = before + 1

    def look(lease):
        try:
            while True:
                lease.check()
                lease.remaining, lease.loss, lease.fileno()
        except holdfast.HoldfastError:
            pass

    crowd = [threading.Thread(target=work) for _ in range(16)]
    for _ in range(50):
        lease = store.lock('looked at').acquire()
        lookers = [threading.Thread(target=look, args=(lease,)) for _ in range(3)]
        for one in lookers:
            one.start()
        lease.release()
        for one in lookers:
            one.join()
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    print('counted', count[0])


def closed():
    """Closing a store ends the waits in it."""
    store, said = holdfast.open(url), []

    def wait():
        try:
            store.lock('held', wait=float('inf')).acquire()
        except holdfast.HoldfastError as error:
            said.append(type(error).__name__)

    waiters = [threading.Thread(target=wait) for _ in range(5)]
    for one in waiters:
        one.start()
    while len(store._core.cancels) < 5:
        time.sleep(0.01)
    time.sleep(0.1)
    store.close()
    for one in waiters:
        one.join()
    try:
        store.lock('held').acquire()
    except holdfast.Invalid as error:
        said.append('is closed' in str(error))
    print(said)


def once():
    """What ends a turn: Ctrl-C, an error, a scope that nobody leaves, a break; and what ends its wait."""
    warnings.simplefilter('ignore', holdfast.StoreWarning)  # a Redis that may lose its records
    said = []
    store, other = holdfast.open(url), holdfast.open(url)
    for error in KeyboardInterrupt, OSError:
        try:
            with store.once(error.__name__, hold_crashed=True) as job:
                raise error
        except error:
            said.append(job.outcome)
    scope = store.once('left open', hold_crashed=True)
    scope.__enter__()
    del scope
    gc.collect()
    with other.once('left open') as job:
        said.append((bool(job), job.outcome))
    try:
        with store.once('broken', ttl=2) as job:
            other.break_('broken', job.token, now=True)
            while job.remaining:
                time.sleep(0.01)
    except holdfast.Lost as error:
        said += ['Lost', error.reason, bool(job)]
    lease = other.lock('at it', ttl=60).acquire()
    for end in stop_me, store.close:
        threading.Timer(0.3, end).start()
        try:
            with store.once('at it', wait=float('inf')):
                said.append('ours')
        except (KeyboardInterrupt, holdfast.Cancelled) as error:
            said.append(type(error).__name__)
    lease.release()
    print(said)


def stop_me():
    os.kill(os.getpid(), signal.SIGALRM)


def storm():
    """Ctrl-C at any moment, a few hundred times: nothing stays held, nothing crashes."""
    random.seed(7)
    store = holdfast.open(url)
    caught = 0
    for _ in range(400):
        try:
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00002, 0.003))
            while True:
                with store.lock('storm', wait=20), store.lock('storm too', wait=20):
                    pass
        except KeyboardInterrupt:
            caught += 1
    gc.collect()
    for name in ('storm', 'storm too'):
        store.lock(name, wait=20).acquire().release()
    store.close()
    print('caught', caught)


def storm_once():
    """The same while a turn of once() begins, or waits; the signals come in twos."""
    warnings.simplefilter('ignore')
    store, other, left, ended = holdfast.open(url), holdfast.open(url), [0], time.monotonic() + 6
    lease = other.lock('at work').acquire()

    def handler(*_):
        if left[0]:
            left[0] -= 1
            raise KeyboardInterrupt

    def one(key):
        try:
            with store.once(key, wait=float('inf')) as job:
                while True:
                    job.check()
        except KeyboardInterrupt:
            pass

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.00013)
    while time.monotonic() < ended:
        try:
            left[0] = 2
            one(random.choice(['at work', str(time.monotonic())]))
        except KeyboardInterrupt:
            pass
        finally:
            left[0] = 0
    signal.setitimer(signal.ITIMER_REAL, 0)
    lease.release()
    print('alive')


async def _kept():
    kept = []
    with holdfast.open(url) as store, holdfast.open(url) as other:
        for n in range(200):
            lease = other.lock('kept').acquire()
            kept.append(asyncio.create_task(store.lock('kept', wait=float('inf')).acquire_async()))
            await asyncio.sleep(0.003)
            for step in (lease.release, kept[-1].cancel)[::n % 2 * 2 - 1]:
                step()
            kept += await asyncio.gather(kept[-1], return_exceptions=True)
            with other.lock('kept', wait=5):
                pass


def kept():
    """Tasks are cancelled in the moment of the grant, and somebody keeps them, and what they raised."""
    asyncio.run(_kept())
    print('nothing stayed held')


def found():
    """Ctrl-C while a server thinks about a question: not an answer that is cut short."""
    warnings.simplefilter('ignore', holdfast.StoreWarning)
    server, said = int(os.environ['REDIS_PID']), []
    with holdfast.open(url) as store, store.elect('asked', address='here') as term:
        term.put('key', b'value')
        for question in (lambda: store.get('asked', 'key'), lambda: store.records('asked'), lambda: store.leader('asked')):
            os.kill(server, signal.SIGSTOP)
            threading.Timer(0.2, stop_me).start()
            threading.Timer(0.4, os.kill, (server, signal.SIGCONT)).start()
            try:
                said.append(question())
            except KeyboardInterrupt:
                said.append('interrupted')
    print(said)


async def _watched(store):
    async with store.lock('watched') as lease:
        lost = asyncio.create_task(lease.lost())
        await asyncio.sleep(0.1)
        if (child := os.fork()) == 0:
            try:
                lease.release()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        await asyncio.sleep(0.1)
        print('still held', not lost.done())
        lost.cancel()


def fork_watched():
    """What a forked child gives back wakes nobody in its parent; nor does it end the wait that it was forked from."""
    store, other = holdfast.open(url), holdfast.open(url)
    asyncio.run(_watched(store))
    lease = other.lock('waited for').acquire()

    def fork_in_a_handler(*_):
        if os.fork() == 0:
            sys.exit()
        print('child', os.wait()[1], flush=True)
        threading.Timer(0.1, lease.release).start()

    signal.signal(signal.SIGALRM, fork_in_a_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with store.lock('waited for', wait=20):
            print('taken')
    except SystemExit:
        os._exit(0)


def copied():
    """A copy of a lease is the same lease."""
    with holdfast.open(url) as store, holdfast.open(url) as other:
        with store.lock('copied') as lease:
            twins = [copy.copy(lease), copy.deepcopy(lease)]
            del twins
            gc.collect()
            time.sleep(0.1)
            try:
                other.lock('copied').acquire()
            except holdfast.Busy:
                print('still held')


def used_up():
    """No descriptor is left: what needs one says so, and what was held is given back."""
    store, said, many, loop = holdfast.open(url), [], [], asyncio.new_event_loop()
    lease = store.lock('used up').acquire()
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    try:
        while True:
            many.append(os.dup(0))
    except OSError:
        pass
    for needs_one in store.lock('used up', wait=1).acquire, partial(loop.run_until_complete, lease.lost()):
        try:
            needs_one()
        except (holdfast.NoMemory, OSError) as error:
            said.append(type(error).__name__)
    lease.release()
    for one in many:
        os.close(one)
    store.lock('used up').acquire().release()
    print(said)


def shared():
    """One Lock, entered by two threads: neither gives back what is the other's."""
    store, said = holdfast.open(url), []
    lock = store.lock('shared', ttl=0.3, wait=20, keep=False)
    with store.lock('shared'):
        crowd = [threading.Thread(target=_share, args=(lock, said)) for _ in range(2)]
        for one in crowd:
            one.start()
        time.sleep(0.2)
    for one in crowd:
        one.join()
    print(sorted(said))


def _share(lock, said):
    try:
        with lock as lease:
            time.sleep(3)  # it is lost, and the other enters
            said.append('lost' if not lease.remaining else 'held')
    except (holdfast.Lost, RuntimeError) as error:
        said.append(type(error).__name__)


def stop(*_):
    raise KeyboardInterrupt


if __name__ == '__main__':
    signal.signal(signal.SIGALRM, stop)
    globals()[sys.argv[1]]()
