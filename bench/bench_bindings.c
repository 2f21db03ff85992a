/* bench_bindings.c URL - an uncontended acquire and release in C, for bindings.sh: prints
 * "c_pair_us 7.4". */
#include "bench.h"

#define BLOCKS 11
#define PAIRS  400

int main(int argc, char **argv)
{
    double least = 1e9;
    struct hf_error err;
    struct hf_store *store;

    must(hf_open(argc > 1 ? argv[1] : "", &store, &err), &err);
    for (int block = 0; block < BLOCKS; block++) {
        double start = now_us();
        double took;

        for (int i = 0; i < PAIRS; i++) {
            struct hf_lease *lease;

            must(hf_acquire(store, "pair", NULL, &lease, &err), &err);
            must(hf_release(lease, &err), &err);
        }
        took = (now_us() - start) / PAIRS;
        least = took < least ? took : least;
    }
    printf("c_pair_us %.2f\n", least);
    hf_close(store);
    return 0;
}
