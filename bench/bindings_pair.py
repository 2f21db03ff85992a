"""bindings_pair.py URL - the same pair as bench_bindings.c, through the Python binding."""
import sys
import time

import holdfast

BLOCKS, PAIRS = 11, 400
store = holdfast.open(sys.argv[1])
blocks = []
for _ in range(BLOCKS):
    start = time.perf_counter()
    for _ in range(PAIRS):
        with store.lock('pair'):
            pass
    blocks.append((time.perf_counter() - start) / PAIRS * 1e6)
print(f'python_pair_us {min(blocks):.2f}')
store.close()
