/* cases.cc URL HOLDFAST [PID YOUNG] - the cases of the bindings in C++, over a store. Prints "ok - TEXT" or
 * "not ok - TEXT" for each. PID: of the store's server, to be frozen; YOUNG: a URL of a store in quarantine. */
#include "cases.hpp"
#include "cases_once.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
