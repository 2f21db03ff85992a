"""receiver.py FOLDER - a command for the relay: answers by the rules in FOLDER/rules, writes to FOLDER/log."""
import json
import os
import sys
import time

folder = sys.argv[1]
log = os.open(folder + "/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def say(text):
    os.write(1, (text + "\n").encode())


for line in sys.stdin:
    message = json.loads(line)
    with open(folder + "/rules", encoding="utf8") as file:
        rule = json.load(file).get(message.get("payload"), "ok")
    os.write(log, (json.dumps(dict(message, rule=rule, pid=os.getpid())) + "\n").encode())
    uid = message["uid"]
    if rule == "die":
        os._exit(3)
    elif rule == "hang":
        time.sleep(1000)
    elif rule == "garbage":
        say("hello")
        say("ok " + "f" * 300)
        say("retry " + uid + " soon")
        say("ok " + uid)
    elif rule == "twice":
        say("ok " + uid)
        say("ok " + uid)
    elif rule == "deaf":
        os.close(1)
        time.sleep(1000)
    elif rule == "silent":
        pass
    elif rule.startswith("retry"):
        say("retry " + uid + rule[5:])
    else:
        say("ok " + uid)
