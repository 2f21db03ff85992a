"""traps.py NAME URL - one thing that may go wrong with the Python binding; prints what came of it."""
import asyncio
import gc
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings

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


def stop(*_):
    raise KeyboardInterrupt


if __name__ == '__main__':
    signal.signal(signal.SIGALRM, stop)
    globals()[sys.argv[1]]()
