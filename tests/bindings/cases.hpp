/* cases.hpp - what the cases of the bindings in C++ share. */
#ifndef CASES_HPP
#define CASES_HPP

#include <holdfast.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using holdfast::Lease;
using holdfast::Options;
using holdfast::Store;
using Clock = std::chrono::steady_clock;

static void check(bool good, const char *text)
{
    std::printf("%sok - %s\n", good ? "" : "not ", text);
    std::fflush(stdout);
}

/* Whether body throws that exception; *text becomes what it says. */
template <class E, class F> static bool throws(F &&body, std::string *text = nullptr)
{
    try {
        body();
    } catch (const E &error) {
        if (text != nullptr)
            *text = error.what();
        return true;
    } catch (const std::exception &error) {
        std::printf("# %s\n", error.what());
    }
    return false;
}

static bool has(const std::string &text, const std::string &part)
{
    return text.find(part) != std::string::npos;
}

static std::chrono::milliseconds since(Clock::time_point then)
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then);
}

#endif // CASES_HPP
