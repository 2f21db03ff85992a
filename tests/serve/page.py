"""page.py - what a person sees in the page and does with it, in one Chromium, in front of real servers.

Told by the environment: HOLDFAST (the program), PAGE_DIR (a folder with a file of credentials), PAGE_PORT and PAGE_OTHER_PORT (free ones),
PAGE_REDIS (the URL of a Redis that is in quarantine). Prints TAP.
"""
import atexit
import http.server
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from browser import Browser

HF = os.environ['HOLDFAST']
DIR = os.environ['PAGE_DIR']
PORT = int(os.environ['PAGE_PORT'])
OTHER_PORT = int(os.environ['PAGE_OTHER_PORT'])
HERE = 'http://127.0.0.1:%d' % PORT
STDERR = open(DIR + '/serve.err', 'ab')  # of the servers
STORE = 'file:' + DIR + '/store'

SCRIPT = '<script>document.title="taken"</script>'
QUOTES = "'; rm -rf ~; echo '"
LONG = 'reports/' + 'x' * 191 + '!'
TURNED = 'abc\u202etxt.exe'

count = failed = 0


def ok(good, what, got=None):
    global count, failed
    count += 1
    failed += not good
    print('%sok %d - %s' % ('' if good else 'not ', count, what))
    if not good and got is not None:
        print('#   got: ' + repr(got).replace('\n', ' ')[:600])
    sys.stdout.flush()


def equal(got, wanted, what):
    ok(got == wanted, what, (got, 'wanted', wanted))


class Server:
    """holdfast serve in front of a store, and its API."""

    def __init__(self, store, *options, port=PORT):
        self.here = 'http://127.0.0.1:%d' % port
        self.command = [HF, 'serve', '--store', store, '--listen', 'tcp:127.0.0.1:%d' % port,
                        '--tokens', DIR + '/tokens', *options]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=STDERR)
        atexit.register(self.process.kill)  # nothing is left behind, whatever happens
        end = time.monotonic() + 20
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(self.here + '/healthz', timeout=5).read()
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit('Bail out! the server does not start')

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(signal.SIGCONT)
        self.process.send_signal(how)
        self.process.wait(20)

    def ask(self, path, **fields):
        request = urllib.request.Request(self.here + path, json.dumps(fields).encode(), {
            'Authorization': 'Bearer ' + SECRET, 'Content-Type': 'application/json'})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def take(self, name, label='test', ttl_ms=600000, wait_ms=0):
        owner = secrets.token_hex(16)
        said = self.ask('/v1/acquire', name=name, owner=owner, ttl_ms=ttl_ms, label=label, wait_ms=wait_ms)
        return {'name': name, 'owner': owner, 'token': said['token']}

    def give(self, lease):
        self.ask('/v1/release', **lease)


with open(DIR + '/night.secret', encoding='ascii') as file:
    SECRET = file.read()

# What the page shows, by name: the text of the cells.
ROWS = '''Object.fromEntries([...document.querySelectorAll('tr.lock')].map(row =>
    [row.lock, [...row.cells].map(cell => cell.innerText.trim())]))'''
ORDER = "[...document.querySelectorAll('tr.lock')].map(row => row.lock)"
STALE = "!document.getElementById('stale').hidden && document.body.classList.contains('stale')"
FRESH = "document.getElementById('stale').hidden && !document.body.classList.contains('stale')"


def text(id_):
    return "document.getElementById('%s').textContent" % id_


def focus_on(name):
    return 'document.activeElement.closest("tr")?.lock === ' + json.dumps(name)


def enter(browser):
    """Whoever comes without a credential is asked for one."""
    browser.look(1200)
    browser.open(HERE + '/')
    ok(browser.eventually("document.activeElement?.id === 'secret'"), 'the page asks for a credential')
    ok(browser.run("document.getElementById('main').hidden"), 'and shows nothing before')
    browser.type('no such secret')
    browser.press('Enter')
    ok(browser.eventually(text('asked') + ".includes('not known')"), 'a wrong one is told so')
    browser.type(SECRET)
    browser.press('Enter')
    ok(browser.eventually("document.querySelectorAll('tr.lock').length > 0"), 'the right one opens the page')
    ok(browser.run("document.getElementById('login').hidden && !document.documentElement.outerHTML.includes(%s)"
                   " && !localStorage.length && !sessionStorage.length && !document.cookie" % json.dumps(SECRET)),
       'and is kept nowhere in it')


def head(browser):
    ok(browser.eventually(text('store') + ' !== "holdfast"'), 'the store is named')
    equal(browser.run(text('store')), STORE, 'by its URL')
    version = subprocess.run([HF, 'version'], stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
    equal(browser.run(text('version')), 'holdfast ' + version, 'the version')
    ok(browser.run(r"/^as of \d\d:\d\d:\d\d$/.test(%s)" % text('asof')), 'as of when', browser.run(text('asof')))


def rows(browser, server):
    """Every lock, as text and nothing else, in the order in which it matters."""
    waiter = threading.Thread(target=server.take, args=('busy',), kwargs={'wait_ms': 60000}, daemon=True)
    waiter.start()
    ok(browser.eventually(ROWS + '.busy?.[4] === "1"'), 'a client that waits is counted')
    shown = browser.run(ROWS)
    for name in (SCRIPT, QUOTES, LONG):
        ok(name in shown and shown[name][0] == name, 'shown as it is: ' + name[:40], list(shown))
    equal(shown.get(TURNED, [''])[0], 'abc\u27e8U+202E\u27e9txt.exe', 'what would turn a name around is spelled out')
    ok(SCRIPT in shown.get(SCRIPT, ['', ''])[1], 'so is a label', shown.get(SCRIPT))
    ok('detached' in shown['busy'][1], 'what belongs to no process says so', shown['busy'])
    equal(browser.run("document.querySelectorAll('body script').length"), 1, 'no markup came with them')
    equal(browser.run(ORDER)[:2], ['busy', 'old'], 'those that are waited for come first, then the oldest')
    equal(browser.run(text('sum')), '7 locks held \u00b7 1 client waiting \u00b7 0 foreign holders', 'the sum')
    return waiter


def changes(browser, server, leases, waiter):
    fresh = server.take('fresh')
    ok(browser.eventually('"fresh" in ' + ROWS), 'a lock that was taken appears')
    server.give(fresh)
    ok(browser.eventually('!("fresh" in %s)' % ROWS), 'and goes when it is released')
    browser.run("[...document.querySelectorAll('tr.lock')].find(row => row.lock === 'busy').click()")
    before = leases['busy']['token']
    server.give(leases['busy'])
    waiter.join(20)
    detail = "document.querySelector('tr.more').innerText"
    ok(browser.eventually('%s.busy?.[5] && %s.busy[5] !== "%s"' % (ROWS, ROWS, before)), 'a new holder has a new token')
    after = browser.run(ROWS + '.busy[5]')
    ok(browser.eventually("%s.includes('token %s')" % (detail, after)), 'the detail tells of the change',
       browser.run(detail))
    ok(browser.run(r"/\d\d:\d\d:\d\d\s+token \d+\s+from \S* ?night\S*first\S* to \S*night\S*test/.test(%s.replace(/\s+/g, ' '))"
                   % detail), 'when, from whom and to whom', browser.run(detail))
    browser.run("[...document.querySelectorAll('tr.lock')].find(row => row.lock === 'busy').click()")
    ok(browser.run("document.querySelector('tr.more') === null"), 'a second click closes it')


def keys(browser):
    """No mouse: the filter, the rows, a detail, what is copied."""
    browser.press('/')
    ok(browser.run("document.activeElement.id === 'q'"), '/ goes to the filter')
    browser.type('RM -RF')
    ok(browser.eventually(ORDER + '.length === 1'), 'which finds names, whatever their case')
    equal(browser.run('location.hash'), '#q=RM%20-RF', 'and stands in the address')
    browser.press('ArrowDown')
    ok(browser.run(focus_on(QUOTES)), 'the arrow goes to the row')
    browser.press('Enter')
    ok(browser.eventually("document.querySelector('tr.more') !== null"), 'Enter opens it')
    equal(browser.run("document.activeElement.getAttribute('aria-expanded')"), 'true', 'and says so')
    commands = browser.run("[...document.querySelectorAll('tr.more .line:not([hidden]) code')].map(c => c.textContent)")
    # The shell is asked what it makes of them.
    for command, word in zip(commands, ('status', 'explain', 'break')):
        said = subprocess.run(['sh', '-c', 'holdfast() { printf "%s\\n" "$@"; }; ' + command], stdout=subprocess.PIPE,
                              text=True, check=False).stdout.splitlines()
        equal(said[:2], [word, QUOTES], 'the command for %s has the name, and nothing runs' % word)
    ok(len(commands) == 3 and ' --token ' in commands[2], 'break is told which hold', commands)
    browser.call('Browser.grantPermissions', permissions=['clipboardReadWrite', 'clipboardSanitizedWrite'], origin=HERE)
    browser.press('Tab')
    browser.press('Enter')
    ok(browser.eventually("document.activeElement.textContent === 'copied'"), 'Tab goes on to what can be copied',
       browser.run('document.activeElement.outerHTML'))
    browser.press('Escape')
    ok(browser.eventually(ORDER + '.length > 3') and browser.run("location.hash === ''"), 'Esc clears the filter')
    browser.run("location.hash = '#q=label-of-old'")
    ok(browser.eventually(ORDER + "[0] === 'old' && %s.length <= 2" % ORDER), 'the filter is taken from the address, and finds labels')
    browser.press('Escape')


def narrow(browser):
    """On a telephone: nothing is cut off, and nothing has to be pushed sideways."""
    browser.look(360)
    browser.eventually(ORDER + '.length > 3')
    ok(browser.run('document.documentElement.scrollWidth <= 360'), 'at 360 px nothing is wider than the screen',
       browser.run('document.documentElement.scrollWidth'))
    name = "[...document.querySelectorAll('tr.lock')].find(row => row.lock === %s)" % json.dumps(LONG)
    ok(browser.run(name + '.cells[0].innerText.length > 10 && ' + name + ".cells[0].querySelector('bdi').clientHeight <= 42"),
       'a name of 200 bytes takes two lines')
    ok(browser.run(name + '.cells[2].offsetWidth === 0 && ' + name + '.cells[5].offsetWidth === 0'),
       'age and token have no column')
    browser.run(name + '.click()')
    detail = "document.querySelector('tr.more:last-of-type, tr.more').innerText"
    browser.eventually('document.querySelectorAll("tr.more").length > 0')
    said = browser.run("[...document.querySelectorAll('tr.more')].map(d => d.innerText).join('\\n')")
    ok('Held for' in said and 'Token' in said and LONG in said.replace('\n', ''), 'they are in the detail, with the whole name', said)
    ok(browser.run('document.documentElement.scrollWidth <= 360'), 'which is no wider', browser.run(detail))
    browser.look(1200)


def words(browser):
    """What is rare is shown too: locks as a store may tell of them, drawn by the page."""
    lock = {'name': 'x', 'held': True, 'token': '7', 'label': 'a/1/b', 'age_ms': 61000, 'remaining_ms': 15000, 'ttl_ms': 30000,
            'waiters': 0, 'detached': False, 'foreign': False, 'broken': None}

    def drawn(**other):
        return browser.run('(() => { const entry = {lock: %s, changes: [], full_ms: 30000}; drawRow(entry);'
                           ' return [...entry.row.cells].map(cell => cell.textContent.trim()); })()' % json.dumps({**lock, **other}))

    equal(drawn(), ['x', 'a/1/b', '1m1s', '15s', '0', '7'], 'a lock that is held')
    equal(drawn(held=False, token=None, label=None, age_ms=None, remaining_ms=None, waiters=2)[1], 'handing over', 'handing over')
    equal(drawn(foreign=True, token=None, label=None, age_ms=None)[1:], ['not knownforeign', 'not known', '15s', '0', 'not known'],
          'foreign, and not known')
    equal(drawn(broken={'by': 'otto', 'reason': None, 'at_ms': None}, detached=True)[1], 'a/1/bbrokendetached', 'broken and detached')
    equal(drawn(remaining_ms=None)[3], 'not known', 'a hold without an end')


CONTRAST = '''(() => {
    const light = color => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
    const paper = getComputedStyle(document.body).backgroundColor;
    const sheet = getComputedStyle(document.querySelector('table')).backgroundColor;
    const of = (query, back) => ratio(getComputedStyle(document.querySelector(query)).color, back);
    return {paper: light(paper), least: Math.min(of('h1', paper), of('#asof', paper), of('th', sheet), of('td.who', sheet),
        of('td.age', sheet), of('#stale', getComputedStyle(document.querySelector('#stale')).backgroundColor))};
})()'''


def themes(browser):
    for scheme, dark in (('light', False), ('dark', True)):
        browser.look(1200, scheme)
        said = browser.run(CONTRAST)
        ok((said['paper'] < 0.5) == dark and said['least'] >= 4.5, scheme + ': everything can be read', said)
    browser.look(1200)


def pace(browser):
    """Once a second; every ten when nobody looks."""
    asked = lambda: sum('/v1/locks' in url for url in browser.requests)
    before = asked()
    browser.run('new Promise(done => setTimeout(done, 4000))')
    ok(2 <= asked() - before <= 5, 'it asks once a second', asked() - before)
    browser.run("Object.defineProperty(document, 'hidden', {get: () => true, configurable: true})")
    browser.run('new Promise(done => setTimeout(done, 1500))')
    before = asked()
    browser.run('new Promise(done => setTimeout(done, 3000))')
    ok(asked() - before <= 1, 'hidden, it lets go', asked() - before)
    browser.run("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    ok(browser.eventually(FRESH, 5) and asked() > before, 'and asks when it is seen again')


def crowd(browser, server):
    """More than fit: 500 rows, and how many are left."""
    many = [server.take('crowd/%03d' % i) for i in range(510)]
    ok(browser.eventually(text('foot') + " === 'and 17 more: filter'"), 'what does not fit is counted', browser.run(text('foot')))
    equal(browser.run(ORDER + '.length'), 500, 'there are 500 rows')
    ok(browser.eventually(text('sum') + ".startsWith('517 locks held')"), 'all are in the sum', browser.run(text('sum')))
    browser.press('/')
    browser.type('crowd/509')
    ok(browser.eventually(ORDER + ".join() === 'crowd/509'"), 'the filter finds those that did not fit')
    browser.press('Escape')
    for lease in many:
        server.give(lease)
    ok(browser.eventually(ORDER + '.length < 10'), 'they are gone')


class Proxy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # noqa: N802, its name is given
        self.send_response(502)
        self.send_header('Content-Length', '3')
        self.end_headers()
        self.wfile.write(b'bad')

    def log_message(self, *_):
        pass


def gone(browser, server):
    """Old news look old, and say why."""
    server.stop(signal.SIGKILL)
    ok(browser.eventually(STALE, 10), 'the server is gone: the red line, and the table is grey')
    ok(browser.run(r"/^No news since \d\d:\d\d:\d\d, [\d.]+m?s ago: the server does not answer/.test(%s)" % text('stale')),
       'since when, and why', browser.run(text('stale')))
    ok(browser.run("getComputedStyle(document.querySelector('table')).opacity < 0.6"), 'grey indeed')
    http.server.HTTPServer.allow_reuse_address = True
    proxy = http.server.HTTPServer(('127.0.0.1', PORT), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    ok(browser.eventually(text('stale') + ".includes('something other than holdfast answered, with 502')", 10),
       "a proxy's word is not the server's", browser.run(text('stale')))
    proxy.shutdown()
    proxy.server_close()
    server.start()
    ok(browser.eventually(FRESH, 10), 'the server is back: so is the page, and its secret')
    server.process.send_signal(signal.SIGSTOP)
    ok(browser.eventually(STALE, 10), 'a server that stands still')
    ok(browser.run(text('stale') + ".includes('has not answered')"), 'is told of', browser.run(text('stale')))
    server.process.send_signal(signal.SIGCONT)
    ok(browser.eventually(FRESH, 10), 'until it goes on')


def policy(browser, server):
    """Nothing was asked of anybody else, and nothing could have been."""
    elsewhere = [url for url in browser.requests if not url.startswith((HERE + '/', 'about:', 'chrome:', 'data:'))]
    equal(elsewhere, [], 'the page asks nobody but its server')
    equal(browser.trouble, [], 'no complaint of the policy, no exception, no dialog')
    with urllib.request.urlopen(HERE + '/') as answer:
        said = answer.headers['Content-Security-Policy']
    for word in ("default-src 'none'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
                 "script-src 'sha256-", "style-src 'sha256-"):
        ok(word in said, 'the policy says ' + word, said)
    browser.run("const s = document.createElement('script'); s.textContent = 'window.taken = 1'; document.body.append(s)")
    ok(browser.run('window.taken === undefined') and browser.trouble, 'a script that got in would not run')
    ok(browser.run("fetch('http://127.0.0.1:%d/').then(() => false, () => true)" % OTHER_PORT), 'and could tell nobody')
    ok(os.path.getsize(os.path.join(os.path.dirname(__file__), '../../src/serve/page.html')) <= 24576, 'the page is 24 KiB at most')


def quarantine(browser):
    """A store that is new grants nothing: until when."""
    server = Server(os.environ['PAGE_REDIS'], port=OTHER_PORT)
    browser.open(server.here + '/')
    browser.eventually("document.activeElement?.id === 'secret'")
    browser.type(SECRET)
    browser.press('Enter')
    ok(browser.eventually(r"/^In quarantine until \d\d:\d\d:\d\d/.test(%s) && !document.getElementById('quarantine').hidden"
                          % text('quarantine')), 'a quarantine, and until when', browser.run(text('quarantine')))
    ok(browser.eventually(text('foot') + ".startsWith('No lock is held')"), 'an empty store says so', browser.run(text('foot')))
    server.stop()


def main():
    server = Server(STORE)
    leases = {'old': server.take('old', label='label-of-old'), 'busy': server.take('busy', label='first')}
    for name in (SCRIPT, QUOTES, LONG, TURNED, 'plain'):
        leases[name] = server.take(name, label=SCRIPT if name == SCRIPT else 'test')
    with Browser() as browser:
        enter(browser)
        head(browser)
        waiter = rows(browser, server)
        changes(browser, server, leases, waiter)
        keys(browser)
        narrow(browser)
        words(browser)
        themes(browser)
        pace(browser)
        crowd(browser, server)
        gone(browser, server)
        policy(browser, server)
        quarantine(browser)
    server.stop()
    print('1..%d' % count)
    return failed > 0


if __name__ == '__main__':
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
