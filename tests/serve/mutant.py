"""mutant.py NAME TREE - makes a mistake in the sources below TREE, which storm.t must find.

  owner    an owner is used for more than one request: the library draws four, and the server forgets whom it served
  answer   a lease counts from its answer, not from its request
  renew    a renewal does not ask which token it is of
  holder   a holder whose connection ends loses the lock
"""
import sys

# File, what stands there, what takes its place; more than one: together.
MUTANTS = {
    'owner': [
        ('src/client/acquire.c',
         'hf__random(store->owners, sizeof store->owners);',
         'memset(store->owners, 1 + (int)getpid() % 4, sizeof store->owners);'),
        ('src/client/acquire.c', '#include <string.h>\n', '#include <string.h>\n#include <unistd.h>\n'),
        ('src/serve/acquire.c',
         '    enum hf_status status = attempts_begin(serve->attempts, body->owner,\n',
         '    unsigned char raw[16] = {0};\n'
         '    char other[HF_OWNER_LEN + 1];\n'
         '    enum hf_status status = (hf__random(raw, sizeof raw), hf__hex_encode(other, raw, sizeof raw), HF_OK);\n\n'
         '    status = attempts_begin(serve->attempts, other,\n'),
    ],
    'answer': [
        ('src/stores/http/answer.c',
         'out->sent_at_ns = sent_at_ns + after_ms * (HF__NS_PER_MS / 100 * 99);',
         'out->sent_at_ns = now_ns;'),
    ],
    'renew': [
        ('src/stores/redis/scripts/renew.lua',
         'if token == ARGV[3] then',
         'if token then'),
    ],
    'holder': [
        ('src/serve/connection.c',
         '    size_t len;                               /* bytes in the buffer */\n',
         '    size_t len;\n    char held_name[HF_NAME_MAX + 1];\n    char held_owner[HF_OWNER_LEN + 1];\n'),
        ('src/serve/connection.c',
         '    go_on = send_response(c, &x);\n',
         '    go_on = send_response(c, &x);\n'
         '    if (x.answer.status == HF_OK && x.granted.owner[0] != 0) {\n'
         '        (void)stpcpy(c->held_name, x.granted.name);\n'
         '        (void)stpcpy(c->held_owner, x.granted.owner);\n'
         '    }\n'),
        ('src/serve/connection.c',
         '    while (serve_one(c))\n        ;\n',
         '    while (serve_one(c))\n        ;\n'
         '    if (c->held_owner[0] != 0 && hf_relay_release(all->serve->store,\n'
         '        &(struct hf_claim){.name = c->held_name, .owner = c->held_owner}, NULL) == HF_OK)\n'
         '        c->held_owner[0] = 0;\n'),
        ('src/serve/connection.c', '#include <errno.h>\n', '#include <errno.h>\n#include <holdfast/relay.h>\n'),
    ],
}

for file, there, instead in MUTANTS[sys.argv[1]]:
    path = f'{sys.argv[2]}/{file}'
    with open(path, encoding='utf-8') as source:
        text = source.read()
    if text.count(there) != 1:
        sys.exit(f'{file} does not have it once, but {text.count(there)} times: {there}')
    with open(path, 'w', encoding='utf-8') as source:
        source.write(text.replace(there, instead))
