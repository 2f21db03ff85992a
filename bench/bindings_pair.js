// bindings_pair.js URL - the same pair as bench_bindings.c, through the Node binding.
'use strict';
const holdfast = require(process.env.HOLDFAST_NODE);

// As many as in redis_peers.mjs: V8 compiles beside the first ones, with either.
const WARM = 1500, BLOCKS = 11, PAIRS = 150;

async function main() {
    const store = await holdfast.open(process.argv[2]);
    const blocks = [];
    for (let i = 0; i < WARM; i++) await (await store.lock('pair')).release();
    for (let block = 0; block < BLOCKS; block++) {
        const start = process.hrtime.bigint();
        for (let i = 0; i < PAIRS; i++) await (await store.lock('pair')).release();
        blocks.push(Number(process.hrtime.bigint() - start) / PAIRS / 1000);
    }
    // node-redlock's figure is its median, so this one is too.
    console.log(`node_pair_us ${blocks.sort((a, b) => a - b)[5].toFixed(2)}`);
    await store.close();
}
main();
