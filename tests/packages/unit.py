#!/usr/bin/env python3
"""unit.py UNIT INSTANCE ROOT [DROP-IN] - runs the command of a unit as systemd would, where it cannot be booted.

What it takes from the unit: Environment, EnvironmentFile, ExecStartPre, ExecStart with its variables and %i, LoadCredential and
SetCredential, StateDirectory, Type=notify and WatchdogSec (as milliseconds, so that a test need not wait), KillMode=mixed (TERM for
the main process only) and SuccessExitStatus. /etc/holdfast and /var/lib are looked for below ROOT.

What the unit tells its manager is printed, a line each; TERM is passed on. Exits 0 if the unit would have succeeded.
Not tried here: conditions, dependencies, User=, restarts, timers, what the watchdog does.
"""
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading


def read(paths):
    settings = {}
    for path in paths:
        for line in open(path):
            name, equals, value = line.strip().partition("=")
            if equals and not line.startswith("#"):
                settings.setdefault(name, []).append(value)
    return settings


def environment(settings, instance, root):
    variables = {"PATH": "/usr/bin:/bin", "HOME": root, "LANG": "C.UTF-8", "INVOCATION_ID": "0"}
    for line in settings.get("Environment", []):
        variables.update(word.split("=", 1) for word in shlex.split(line))
    for path in settings.get("EnvironmentFile", []):
        for line in open(root + path):
            name, equals, text = line.strip().partition("=")
            if equals and not line.startswith("#"):
                variables[name] = value(text)
    return {name: text.replace("%i", instance) for name, text in variables.items()}


def value(text):
    """Of a line in an EnvironmentFile: quotes mean something only where nothing stands before them, and blanks after
    them go away."""
    result, quote, begun = "", "", False
    letters = iter(text)
    for letter in letters:
        if letter == "\\" and quote != "'":
            result += next(letters, "")
            begun = begun or not quote
        elif letter == quote:
            quote = ""
        elif letter in "'\"" and not quote and not begun:
            quote = letter
        elif quote or begun or not letter.isspace():
            result += letter
            begun = begun or not quote
    return result


def command(line, variables):
    """$NAME alone is as many words as it has, ${NAME} one."""
    words = []
    for word in shlex.split(line):
        if re.fullmatch(r"\$\w+", word):
            words += shlex.split(variables.get(word[1:], ""))
        else:
            words.append(re.sub(r"\$(\$|\{(\w+)\})", lambda m: "$" if m[1] == "$" else variables.get(m[2], ""), word))
    return words


def credentials(settings, root):
    folder = root + "/credentials"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    for line in settings.get("LoadCredential", []):
        name, path = line.split(":", 1)
        fallback = [v for v in settings.get("SetCredential", []) if v.startswith(name + ":")]
        try:
            value = open(root + path).read()
        except FileNotFoundError:
            if not fallback:
                raise
            value = fallback[0].split(":", 1)[1].replace("\\n", "\n")
        with open(f"{folder}/{name}", "w") as file:
            file.write(value)
    return folder


def listen(path):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(path)

    def hear():
        while True:
            for line in listener.recv(4096).decode().splitlines():
                print(line, flush=True)

    threading.Thread(target=hear, daemon=True).start()


def main():
    unit, instance, root = sys.argv[1:4]
    settings = read([unit] + sys.argv[4:])
    expand = [[value.replace("%i", instance) for value in values] for values in settings.values()]
    settings = dict(zip(settings, expand))
    variables = environment(settings, instance, root)
    for name in settings.get("StateDirectory", []):
        variables["STATE_DIRECTORY"] = f"{root}/var/lib/{name}"
        os.makedirs(variables["STATE_DIRECTORY"], mode=0o755, exist_ok=True)
    variables["CREDENTIALS_DIRECTORY"] = credentials(settings, root)
    words = command(settings["ExecStart"][0], variables)
    if settings["Type"] == ["notify"]:
        variables["NOTIFY_SOCKET"] = f"{root}/notify.{os.getpid()}"
        listen(variables["NOTIFY_SOCKET"])
    variables["WATCHDOG_USEC"] = str(1000 * int(settings.get("WatchdogSec", ["0"])[0]))
    for line in settings.get("ExecStartPre", []):
        if subprocess.run(command(line, variables), env=variables).returncode != 0:
            sys.exit(1)
    # The number of the process is known once it runs.
    go = ["sh", "-c", 'WATCHDOG_PID=$$ exec "$@"', "sh"]
    process = subprocess.Popen(go + words, env=variables)
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    code = 128 - code if code < 0 else code
    good = [0] + [int(word) for word in " ".join(settings.get("SuccessExitStatus", [])).split()]
    print(f"exit {code}", flush=True)
    sys.exit(0 if code in good else 1)


main()
