/* cpp.cc DIR - what holdfast.hpp adds to an acquire and release of the library, in the embedded store. */
#include "bench.h"

#include <algorithm>
#include <holdfast.hpp>

static constexpr int rounds = 21, pairs = 4000;

static double c_pair(hf_store *store)
{
    hf_acquire_options options = {};
    double start = now_us();

    options.size = sizeof options;
    options.ttl_ms = 30000;
    for (int i = 0; i < pairs; i++) {
        hf_lease *lease;
        hf_error err;

        must(hf_acquire(store, "pair", &options, &lease, &err), &err);
        must(hf_release(lease, &err), &err);
    }
    return (now_us() - start) / pairs;
}

static double cpp_pair(holdfast::Store &store)
{
    double start = now_us();

    for (int i = 0; i < pairs; i++)
        store.with_lock("pair", {holdfast::milliseconds(30000)}, [](holdfast::Lease &) {});
    return (now_us() - start) / pairs;
}

int main(int argc, char **argv)
{
    double c[rounds], cpp[rounds];

    if (argc != 2)
        return 64;
    holdfast::Store store(std::string("file:") + argv[1]);
    for (int i = 0; i < rounds; i++) {
        c[i] = c_pair(store.handle());
        cpp[i] = cpp_pair(store);
    }
    std::sort(c, c + rounds);
    std::sort(cpp, cpp + rounds);
    fact("cpp.c_pair, median", c[rounds / 2], "us");
    fact("cpp.cpp_pair, median", cpp[rounds / 2], "us");
    at_most("cpp.pair_vs_c", cpp[rounds / 2] / c[rounds / 2], 1.05, "x");
}
