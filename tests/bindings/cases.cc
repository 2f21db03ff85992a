/* cases.cc URL HOLDFAST [PID YOUNG] - the cases of the bindings in C++, over a store. Prints "ok - TEXT" or
 * "not ok - TEXT" for each. PID: of the store's server, to be frozen; YOUNG: a URL of a store in quarantine. */
#include <holdfast.hpp>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

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

static std::chrono::milliseconds since(Clock::time_point then);

static void taking(Store &store)
{
    std::string text;
    std::uint64_t before;

    {
        Options options{30s};
        options.label = "the holder";
        Lease lease = store.lock("take", options);

        before = lease.token();
        check(lease.held() && before != 0 && lease.remaining() > 20s && lease.name() == "take",
              "take: a token, and time left");
        lease.check();
        check(throws<holdfast::Busy>([&] { store.lock("take"); }, &text) && has(text, "the holder"),
              "busy: the text names the holder's label");
        check(!has(text, hf_lease_owner(lease.handle())), "and not its owner");
        auto at = Clock::now();
        check(throws<holdfast::Busy>([&] { store.lock("take", {30s, 300ms}); }) &&
                  since(at) >= 290ms && since(at) < 10s,
              "a wait that times out is busy, after that time");
        lease.renew(20s);
        check(lease.ttl() == 20s && lease.remaining() <= 20s, "renew: with another ttl");
        Lease moved = std::move(lease);
        check(moved.held() && lease.handle() == nullptr, "a lease moves");
    }
    Lease again = store.lock("take");
    check(again.token() > before, "leaving the scope released it, and the next token is higher");
    again.release();
    check(!store.inspect("take"), "a released lock is free");
    check(throws<holdfast::Invalid>([&] { store.lock("take", {-1s}); }) &&
              throws<holdfast::Invalid>([&] { store.lock("take", {100h}); }),
          "a ttl that is none is refused, not cut");
}

static void scopes(Store &store)
{
    auto token = store.with_lock("scope", {30s}, [](Lease &lease) { return lease.token(); });

    check(token != 0 && !store.inspect("scope"), "with_lock returns what its body does");
    check(throws<std::domain_error>([&] {
              store.with_lock("scope", {30s}, [](Lease &) { throw std::domain_error("mine"); });
          }) && !store.inspect("scope"),
          "a body that throws: its exception, and the lock is free");
    Options alone{100ms};
    alone.keeper = false;
    check(throws<holdfast::Lost>([&] {
              store.with_lock("scope", alone,
                              [](Lease &) { std::this_thread::sleep_for(400ms); });
          }),
          "a body that succeeded after the lock was lost: Lost");
    check(throws<std::domain_error>([&] {
              store.with_lock("scope", alone, [](Lease &) {
                  std::this_thread::sleep_for(400ms);
                  throw std::domain_error("mine");
              });
          }),
          "one that failed after that: its own exception");
}

static void losing(Store &store)
{
    Options alone{100ms};
    alone.keeper = false;
    Lease lease = store.lock("lose", alone);

    std::this_thread::sleep_for(300ms);
    check(!lease.held() && throws<holdfast::Lost>([&] { lease.check(); }),
          "check throws once nothing remains");
    check(throws<holdfast::Lost>([&] { lease.release(); }), "release after loss says so");
    try {
        Lease next = store.lock("lose", alone);
        std::this_thread::sleep_for(300ms);
        next.check();
        check(false, "and why");
    } catch (const holdfast::Lost &error) {
        check(error.reason() == HF_LOSS_EXPIRED && error.status() == HF_LOST, "and why");
    }
}

#if defined(__cpp_lib_jthread)
/* In a child, without stdin and then without any descriptor. */
static void without_descriptors(const std::string &url)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        Store store(url);
        Lease lease = store.lock("without");

        alarm(20);
        close(0);
        std::stop_source source;
        std::jthread stop([&] {
            std::this_thread::sleep_for(200ms);
            source.request_stop();
        });
        if (!throws<holdfast::Cancelled>(
                [&] { store.lock("without", {30s, holdfast::forever}, source.get_token()); }))
            _exit(1);
        rlimit none{0, 0};
        setrlimit(RLIMIT_NOFILE, &none);
        std::stop_token lost = lease.stop_token();
        while (!lost.stop_requested())
            std::this_thread::sleep_for(1ms);
        lease.release();
        _exit(0);
    }
    waitpid(child, &status, 0);
    check(status != SIGALRM && WEXITSTATUS(status) != 1,
          "a stop token ends a wait without stdin, where a descriptor may be 0");
    check(status == 0, "a stop token without a descriptor is over at once, and the release not held up");
}
#endif

static void waiting(Store &store)
{
    Lease lease = store.lock("wait");
    int pipes[2];

    std::thread later([&] {
        std::this_thread::sleep_for(200ms);
        lease.release();
    });
    Lease next = store.lock("wait", {30s, 20s});
    later.join();
    check(next.held(), "a wait ends with the release of the other");
    check(throws<holdfast::Busy>([&] { store.lock("wait", {30s, -5s}); }),
          "a time that is over is no wait");
    check(throws<holdfast::Busy>([&] { store.lock("wait", {30s, -1ms}); }),
          "nor is one that is over by a millisecond");
    check(pipe(pipes) == 0, "a pipe");
    Options options{30s, holdfast::forever};
    options.cancel_fd = pipes[0];
    std::thread cancel([&] {
        std::this_thread::sleep_for(200ms);
        check(write(pipes[1], "x", 1) == 1, "(told to stop)");
    });
    check(throws<holdfast::Cancelled>([&] { store.lock("wait", options); }),
          "a wait is cancelled by a descriptor");
    cancel.join();
    auto info = store.inspect("wait");
    check(info && info->held && info->waiters == 0, "and has left the queue");
    close(pipes[0]);
    close(pipes[1]);
#if defined(__cpp_lib_jthread)
    std::stop_source source;
    Clock::time_point at;
    std::jthread stop([&] {
        std::this_thread::sleep_for(200ms);
        at = Clock::now();
        source.request_stop();
    });
    bool cancelled = throws<holdfast::Cancelled>(
        [&] { store.lock("wait", {30s, holdfast::forever}, source.get_token()); });
    check(cancelled && since(at) < 100ms, "or by a stop token, within 100ms");
    without_descriptors(store.url());
#endif
}

static void looking(Store &store, const std::string &url)
{
    Lease lease = store.lock("look #1 'ö' \"q\" %s", {30s});

    check(store.inspect(lease.name())->token == lease.token(), "odd names are names");
    check(throws<holdfast::Invalid>([&] { store.lock("line\nbreak"); }) &&
              throws<holdfast::Invalid>([&] { store.lock(""); }),
          "no names: control characters, nothing");
    check(throws<holdfast::Invalid>([&] { store.lock(std::string("look\0x", 6)); }),
          "a name with a byte of 0 in it is not the name before that");
    check(store.list("look").size() == 1 && store.list("nothing").empty(), "list, by prefix");
    if ((store.features() & HF_FEATURE_RECORDS) != 0) {
        std::string value("a\0b", 3);
        lease.put("key", value);
        auto record = store.get(lease.name(), "key");
        check(record && record->value == value && record->token == lease.token() && !record->until,
              "a record, with a byte of 0 in it");
        check(!store.get(lease.name(), "other") && store.records(lease.name()).size() == 1,
              "one that is not there, and all of them");
    }
    lease.release();
    auto readonly = Store::open_readonly(url);
    check(throws<holdfast::Invalid>([&] { readonly.lock("x"); }), "read-only takes no lock");
    check(throws<holdfast::Invalid>([] { Store bad("nonsense"); }) &&
              throws<holdfast::Unsupported>([] { Store bad("gopher://h"); }),
          "a bad URL");
}

static void electing(Store &store)
{
    holdfast::ElectOptions options;
    std::uint64_t term = 0;

    if ((store.features() & HF_FEATURE_RECORDS) == 0)
        return;
    options.address = "here:80";
    store.elect("lead", options, [&](Lease &lease) {
        auto leader = store.leader("lead");
        term = lease.token();
        check(leader && leader->term == term && leader->address == "here:80", "elect, and leader");
        check(throws<holdfast::Invalid>([&] { lease.release(); }) && lease.held(),
              "a leader cannot give back what the election will");
        return false;
    });
    check(term != 0 && !store.leader("lead"), "who has resigned does not lead");
    check(throws<std::domain_error>([&] {
              store.elect("lead", options,
                          [](Lease &) -> bool { throw std::domain_error("mine"); });
          }) && !store.leader("lead"),
          "what a leader throws comes out, and it has resigned");
}

/* Work that is to be done once: who does it, and what the others hear. */
static void doing_once(Store &store)
{
    using holdfast::Turn;
    holdfast::OnceOptions options;
    std::string text;
    std::uint64_t token = 0;
    int runs = 0;

    options.label = "the worker";
    auto first = store.once("report", options, [&](Turn &turn) {
        token = turn.token();
        turn.check();
        turn.output = std::string("made\0it", 7);
        check(throws<holdfast::Busy>([&] { store.once("report", {}, [](Turn &) {}); }, &text) &&
                  has(text, "the worker"),
              "while one does the work, another hears who");
        check(throws<holdfast::Invalid>([&] { turn.release(); }), "the turn's lease is only lent");
    });
    check(first.ran && first.outcome == HF_ONCE_DONE && first.slot == "ever" && token != 0, "once: done here");
    auto second = store.once("report", {}, [&](Turn &) { runs++; });
    check(!second.ran && second.outcome == HF_ONCE_DONE && runs == 0 && second.by == "the worker" &&
              second.token == token && second.output == std::string("made\0it", 7) && has(second.text, "the worker"),
          "once: who has done it, and what it said");

    options.retries = 2;
    options.retry_after = 1ms;
    auto third = store.once("again", options, [&](Turn &) {
        if (++runs == 1)
            throw std::logic_error("not yet");
        return runs == 3;
    });
    check(third.ran && third.outcome == HF_ONCE_DONE && runs == 3, "once: tried again after a failure of either kind");

    holdfast::OnceOptions daily;
    daily.per = 24h;
    daily.at = "03:00";
    daily.tz = "Europe/Berlin";
    auto day = store.once("daily", daily, [](Turn &turn) { return turn.slot.size() == 10; });
    check(day.ran && day.outcome == HF_ONCE_DONE, "once a day");
    check(throws<std::logic_error>([&] { store.once("bad", daily, [](Turn &) { throw std::logic_error("no"); }); }),
          "once: what the work throws is thrown");
    check(store.once("bad", daily, [&](Turn &) { runs++; }).outcome == HF_ONCE_FAILED && runs == 3,
          "once: and it has failed for all");
    daily.tz = "Europe/Nowhere";
    check(store.try_once("daily", daily, [](Turn &) {}).failure().status == HF_INVALID, "no such time zone");
    options.hold_crashed = true;
    auto held = store.try_once("held", options, [](Turn &turn) {
        turn.unless_done = HF_ONCE_END_CUT_OFF;
        return false;
    });
    check(held && held->outcome == HF_ONCE_HELD, "once: work that was cut off is held");
    auto lost = store.try_once("broken", {}, [&](Turn &turn) { store.break_("broken", turn.token(), "a test", true); });
    check(!lost && lost.failure().status == HF_LOST,
          "once: Lost, if the work was done and the lock was lost");
}

#if defined(__cpp_lib_jthread)
static void stopping_once(Store &store)
{
    using holdfast::Turn;
    holdfast::OnceOptions options;
    bool heard = false;

    options.ttl = 1s; /* and so it is renewed before a second has passed */
    auto lost = store.try_once("stopped", options, [&](Turn &turn) {
        std::stop_token stop = turn.stop_token();

        store.break_("stopped", turn.token(), "a test", true);
        for (int i = 0; i < 500 && !stop.stop_requested(); i++)
            std::this_thread::sleep_for(10ms);
        heard = stop.stop_requested();
    });
    check(heard && lost.failure().status == HF_LOST && lost.failure().reason == HF_LOSS_BROKEN,
          "once: the work hears of a loss by its stop token");

    std::stop_source source;
    Clock::time_point then;
    options.wait = holdfast::forever;
    store.once("taken", options, [&](Turn &) {
        std::thread stopper([&] {
            std::this_thread::sleep_for(100ms);
            then = Clock::now();
            source.request_stop();
        });
        check(throws<holdfast::Cancelled>([&] { store.once("taken", options, [](Turn &) {}, source.get_token()); }) &&
                  since(then) < 100ms,
              "once: a stop ends the wait within 100 ms");
        stopper.join();
    });
}
#endif

static void breaking(Store &store)
{
    if ((store.features() & HF_FEATURE_BREAK) == 0)
        return;
    Lease lease = store.lock("break", {600ms});

    check(throws<holdfast::Lost>([&] { store.break_("break", lease.token() - 1); }) && lease.held(),
          "break: only the hold that is meant");
    store.break_("break", lease.token(), "a test");
    pollfd fd = {lease.fd(), POLLIN, 0};
    check(poll(&fd, 1, 10000) == 1 && lease.loss() == HF_LOSS_BROKEN, "its holder hears of it");
    try {
        lease.release();
        check(false, "and why");
    } catch (const holdfast::Lost &error) {
        check(error.reason() == HF_LOSS_BROKEN, "and why");
    }
    auto both = store.all({"break b", "break a"}, {600ms});
    store.break_("break b", both[0].token(), "a test");
    fd.fd = both[0].fd();
    check(poll(&fd, 1, 10000) == 1 && both[1].held() && throws<holdfast::Invalid>([&] { both[1].release(); }),
          "one of several is broken; none is given back alone");
    auto ended = both.try_release();
    check(!ended && ended.failure().status == HF_LOST && ended.failure().reason == HF_LOSS_BROKEN &&
              store.list("break").empty(),
          "their release says why, and gives back all");
    check(both.size() == 0 && both.try_release(), "and has nothing left to give back");
}

/* A program of another language takes the lock in between. */
static void turns(Store &store, const std::string &url, const std::string &program)
{
    std::uint64_t before = store.with_lock("turns", {30s}, [](Lease &lease) { return lease.token(); });
    std::string line = program + " --store '" + url + "' run turns -- sh -c 'echo $HOLDFAST_TOKEN'";
    unsigned long long other = 0;
    FILE *out = popen(line.c_str(), "r");

    check(out != nullptr && std::fscanf(out, "%llu", &other) == 1, "the program ran");
    pclose(out);
    Lease lease = store.lock("turns");
    check(before < other && other < lease.token(), "tokens rise across languages");
}

static void forking(Store &store)
{
    Lease lease = store.lock("fork");
    int status = 1;
    pid_t child = fork();

    if (child == 0) {
        std::string text;
        bool said = throws<holdfast::Invalid>([&] { store.lock("other"); }, &text);
        _exit(said && has(text, "fork") ? 0 : 1);
    }
    check(waitpid(child, &status, 0) == child && status == 0, "a forked child is told so");
    check(lease.held(), "and the parent's lease is as it was");
}

static void dying(Store &store, const std::string &url)
{
    auto best = 1000ms;

    for (int i = 0; i < 5; i++) {
        int pipes[2];
        char byte;
        pid_t child;

        check(pipe(pipes) == 0, "(a pipe)");
        child = fork();
        if (child == 0) {
            Store own(url);
            Lease lease = own.lock("die", {30s});
            if (write(pipes[1], "x", 1) == 1)
                pause();
            _exit(1);
        }
        bool taken = read(pipes[0], &byte, 1) == 1;
        Clock::time_point at;
        std::thread killer([&] {
            std::this_thread::sleep_for(100ms);
            at = Clock::now();
            kill(child, SIGKILL);
        });
        Lease lease = store.lock("die", {30s, 20s});
        auto took = since(at);
        killer.join();
        waitpid(child, nullptr, 0);
        best = taken && took < best ? took : best;
        close(pipes[0]);
        close(pipes[1]);
    }
    check(best <= 10ms, "a killed holder's lock is the next one's within 10ms");
}

static void freezing(Store &store, pid_t server)
{
    Lease lease = store.lock("freeze", {2s});
    Lease other = store.lock("freeze too", {2s});
    pollfd fd = {lease.fd(), POLLIN, 0};
#if defined(__cpp_lib_jthread)
    std::atomic<bool> told = false;
    std::stop_callback tell(other.stop_token(), [&] { told = true; });
#endif

    kill(server, SIGSTOP);
    auto at = Clock::now();
    bool heard = poll(&fd, 1, 10000) == 1;
    auto took = since(at);
    check(heard && took <= 2100ms && !lease.held(), "a frozen server: the loss is heard by the deadline");
    check(throws<holdfast::Lost>([&] { lease.check(); }) && lease.loss() != HF_LOSS_NONE,
          "and has a reason");
#if defined(__cpp_lib_jthread)
    for (int i = 0; i < 100 && !told; i++)
        std::this_thread::sleep_for(10ms);
    check(told, "the stop token says so, too");
#endif
    kill(server, SIGCONT);
    check(throws<holdfast::Lost>([&] { lease.release(); }), "release after it says so");
}

static void young(const std::string &url)
{
    try {
        Store store(url);
        Lease lease = store.lock("young");
        check(false, "quarantine");
    } catch (const holdfast::Quarantine &error) {
        check(error.retry_after() > 0ms && error.retry_after() <= 120s, "quarantine, with its time");
    }
}

static std::chrono::milliseconds since(Clock::time_point then)
{
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - then);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 64;
    std::string url = argv[1];
    Store store(url);

    taking(store);
    scopes(store);
    losing(store);
    waiting(store);
    looking(store, url);
    electing(store);
    doing_once(store);
#if defined(__cpp_lib_jthread)
    stopping_once(store);
#endif
    breaking(store);
    turns(store, url, argv[2]);
    forking(store);
    if ((store.features() & HF_FEATURE_CRASH_RELEASE) != 0 && url.rfind("file:", 0) == 0)
        dying(store, url);
    if (argc > 4) {
        freezing(store, static_cast<pid_t>(std::atoi(argv[3])));
        young(argv[4]);
    }
    std::puts("ok - to the end");
}
