"""driver.py - does with the Python binding what it is told, line by line: tests/bindings/README.md."""
import asyncio
import json
import os
import sys
import threading
import time

import holdfast

store = None
leases = {}
tasks = {}
loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()


def soon(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, loop)


async def outcome(coroutine):
    """The lease, or the error, and when: a task that is cancelled ends only here."""
    try:
        return await coroutine, time.monotonic() * 1000
    except (asyncio.CancelledError, holdfast.HoldfastError) as error:
        return error, time.monotonic() * 1000


async def as_task(coroutine):
    return loop.create_task(outcome(coroutine))


def options(ttl, wait, label=None, keep=True):
    return {'ttl': ttl / 1000 if ttl else None, 'wait': float('inf') if wait < 0 else wait / 1000, 'label': label,
            'keep': keep}


def taken(slot, lease):
    leases[slot] = lease
    all_ = lease if isinstance(lease, holdfast.Leases) else [lease]
    return {'ok': str(all_[0].token), 'name': '+'.join(one.name for one in all_), 'remaining': lease.remaining * 1000,
            'at': time.monotonic() * 1000}


def wanted(name, *rest):
    """Of a name, or of {'any': names} or {'all': names}."""
    if isinstance(name, str):
        return store.lock(name, **options(*rest))
    (kind, names), = name.items()
    return getattr(store, kind)(names, **options(*rest))


def open_(url, wait=0):
    global store
    store = holdfast.open(url, wait=wait / 1000)
    return {'ok': store.url}


def lock(slot, name, *rest):
    return taken(slot, wanted(name, *rest).acquire())


def begin(slot, name, *rest):
    tasks[slot] = soon(as_task(wanted(name, *rest).acquire_async())).result()
    return {'ok': True}


def cancel(slot):
    loop.call_soon_threadsafe(tasks[slot].cancel)
    return {'ok': True}


async def finished(task):
    return await task


def join(slot):
    result, at = soon(finished(tasks.pop(slot))).result()
    if isinstance(result, (holdfast.Lease, holdfast.Leases)):
        return {**taken(slot, result), 'at': at}
    return {**failed(result), 'at': at}


def lost(slot):
    return {'ok': soon(leases[slot].lost()).result(), 'at': time.monotonic() * 1000}


def with_(name, ttl, fail, keep, pause):
    with wanted(name, ttl, 0, None, keep):
        time.sleep(pause / 1000)
        if fail:
            raise OSError('the body failed')
    return {'ok': True}


def put(slot, key, value):
    leases[slot].put(key, value)
    return {'ok': True}


def get(name, key):
    record = store.get(name, key)
    return {'ok': record and record.value.decode(), 'token': record and str(record.token)}


def elect(slot, name, address):
    return taken(slot, store.elect(name, address=address).acquire())


def break_(name, token, reason):
    store.break_(name, int(token), reason=reason)
    return {'ok': True}


def once(key, given, failures):
    ran, error = False, None
    while True:
        try:
            with store.once(key, per=given.get('per', 0) / 1000, wait=given.get('wait', 0) / 1000,
                            retries=given.get('retries', 0), tz=given.get('tz'), label=given.get('label')) as job:
                if job:
                    ran, error, failures = True, None, failures - 1
                    if failures >= 0:
                        raise OSError('the body failed')
            if error:
                raise error
            return {'ok': job.outcome, 'ran': ran, 'text': job.text}
        except OSError as failure:
            if failure is error:
                raise
            error = failure


def leader(name):
    found = store.leader(name)
    return {'ok': found and str(found.term), 'address': found and found.address}


def turns(count, name, counter, who):
    for _ in range(count):
        with store.lock(name, wait=float('inf')):
            with open(counter, 'r+') as file:
                value = int(file.read()) + 1
                file.seek(0)
                file.write(str(value))
            with open(counter + '.log', 'a') as file:
                file.write(who + '\n')
    return {'ok': count}


def failed(error):
    if isinstance(error, asyncio.CancelledError):
        return {'error': 'Cancelled', 'text': ''}
    known = isinstance(error, holdfast.HoldfastError)
    return {'error': type(error).__name__ if known else 'Body', 'text': str(error),
            'shown': repr(error) + repr(store) + repr(leases), 'reason': getattr(error, 'reason', None),
            'retry_after_ms': getattr(error, 'retry_after', 0) * 1000}


def check(slot):
    leases[slot].check()
    return {'ok': True}


def renew(slot, ttl):
    leases[slot].renew(ttl / 1000 if ttl else None)
    return {'ok': True, 'remaining': leases[slot].remaining * 1000}


def release(slot):
    leases[slot].release()
    return {'ok': True}


def remaining(slot):
    return {'ok': True, 'remaining': leases[slot].remaining * 1000}


def close():
    store.close()
    return {'ok': True}


COMMANDS = {'open': open_, 'lock': lock, 'begin': begin, 'cancel': cancel, 'join': join, 'lost': lost, 'with': with_,
            'put': put, 'get': get, 'elect': elect, 'leader': leader, 'turns': turns, 'check': check, 'renew': renew,
            'release': release, 'break': break_, 'once': once, 'remaining': remaining, 'close': close}
for line in sys.stdin:
    command, *arguments = json.loads(line)
    try:
        answer = COMMANDS[command](*arguments)
    except Exception as error:
        answer = failed(error)
    print(json.dumps(answer), flush=True)
os._exit(0)
