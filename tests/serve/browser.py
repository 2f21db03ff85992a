"""browser.py - one headless Chromium, spoken to through two pipes in its own protocol: no driver, no port.

    with Browser() as browser:
        browser.open('http://localhost:7070/')
        browser.eventually('document.title === "x"')

What the page asked for, what it was refused and what it complained of is kept in `requests`, `trouble`.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

ANSWER_S = 60  # a busy machine, and a sanitizer behind the page
PROGRAM = shutil.which('chromium') or shutil.which('chromium-browser')


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix='holdfast-browser.')
        self.requests = []  # URLs
        self.trouble = []   # what the console, the policy and uncaught exceptions said
        self.waiting = b''
        self.number = 0
        to_read, self.to = os.pipe()
        self.heard, to_write = os.pipe()

        def pipes():  # the protocol is on 3 and 4; these may be there already
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen(
            [PROGRAM, '--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu',
             '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update',
             '--disable-extensions', '--no-first-run', '--no-proxy-server', '--mute-audio',
             '--user-data-dir=' + self.folder, 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=pipes, close_fds=False, start_new_session=True, env={**os.environ, 'HOME': self.folder})
        os.close(to_read)
        os.close(to_write)
        self.session = None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(domain + '.enable')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.call('Browser.close')
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.heard)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.to, json.dumps(message).encode() + b'\0')
        end = time.monotonic() + ANSWER_S
        while True:
            said = self.hear(end)
            if said.get('id') == self.number:
                if 'error' in said:
                    raise RuntimeError(method + ': ' + said['error']['message'])
                return said['result']
            self.note(said)

    def hear(self, end):
        while b'\0' not in self.waiting:
            ready = select.select([self.heard], [], [], max(0, end - time.monotonic()))[0]
            more = os.read(self.heard, 1 << 20) if ready else b''
            if not more:
                raise RuntimeError('the browser does not answer')
            self.waiting += more
        one, self.waiting = self.waiting.split(b'\0', 1)
        return json.loads(one)

    def note(self, event):
        method, params = event.get('method'), event.get('params', {})
        if method == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])
        elif method == 'Runtime.exceptionThrown':
            self.trouble.append(json.dumps(params['exceptionDetails']))
        elif method == 'Log.entryAdded' and params['entry']['source'] != 'network':
            self.trouble.append(params['entry']['text'])
        elif method == 'Page.javascriptDialogOpening':
            self.trouble.append('a dialog: ' + params['message'])

    def open(self, url):
        self.call('Page.navigate', url=url)

    def run(self, script):
        """What the script's last expression is worth."""
        said = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in said:
            raise RuntimeError(script + ': ' + json.dumps(said['exceptionDetails']))
        return said['result'].get('value')

    def eventually(self, script, seconds=20):
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def press(self, key, text='', code=0):
        codes = {'Enter': 13, 'Escape': 27, 'ArrowUp': 38, 'ArrowDown': 40, 'Tab': 9}
        text = text or ('\r' if key == 'Enter' else key if len(key) == 1 else '')
        what = {'key': key, 'windowsVirtualKeyCode': code or codes.get(key, ord(key[0]))}
        self.call('Input.dispatchKeyEvent', type='keyDown', text=text, **what)
        self.call('Input.dispatchKeyEvent', type='keyUp', **what)

    def type(self, text):
        for one in text:
            self.press(one)

    def look(self, width, scheme='light', height=900):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}])

    def picture(self, path):
        with open(path, 'wb') as out:
            out.write(base64.b64decode(self.call('Page.captureScreenshot')['data']))
