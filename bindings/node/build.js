// build.js - compiles addon.c with the headers that came with this node: nothing is downloaded.
// CC, CFLAGS and LDFLAGS are honoured; without them, pkg-config tells where libholdfast is.
'use strict';
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const words = (text) => (text ?? '').split(/\s+/).filter(Boolean);
const places = [path.resolve(fs.realpathSync(process.execPath), '../../include/node'), '/usr/include/node'];
const headers = places.find((place) => fs.existsSync(path.join(place, 'node_api.h')));
if (headers === undefined) {
    console.error(`holdfast: no node_api.h in ${places.join(' or ')}: install the headers of node (libnode-dev)`);
    process.exit(1);
}
let library = [];
if (process.env.LDFLAGS === undefined)
    try {
        library = words(execFileSync('pkg-config', ['--cflags', '--libs', 'holdfast'], { encoding: 'utf8' }));
    } catch {
        console.error('holdfast: pkg-config does not know libholdfast: install libholdfast-dev');
        process.exit(1);
    }
execFileSync(process.env.CC ?? 'cc', ['-std=c11', '-D_GNU_SOURCE', '-O2', '-g', '-Wall', '-Wextra', '-fPIC', '-shared',
    `-I${headers}`, ...words(process.env.CFLAGS), 'addon.c', '-o', 'holdfast.node', '-pthread', '-Wl,-z,relro,-z,now',
    ...library, ...words(process.env.LDFLAGS)], { cwd: __dirname, stdio: 'inherit' });
