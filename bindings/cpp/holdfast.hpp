/* holdfast.hpp - holdfast for C++17 and later, header only, over libholdfast (holdfast.h).
 *
 *     holdfast::Store store("redis://localhost");
 *     store.with_lock("nightly", {30s, 10s}, [&](holdfast::Lease &lease) {
 *         lease.check();                     // the line to put before a write
 *         database.write(data, lease.token());
 *     });
 *
 * A Store and a Lease own what they stand for, can be moved and not copied, and end it with their
 * scope. Each call exists twice: one throws, one returns a Result and is called try_...; with
 * -fno-exceptions there is only the second. There is one exception per status, all of them an
 * Error with the library's text:
 *
 *     Busy, Lost (reason), Stale, Cancelled, Unknown, Unreachable, Quarantine (retry_after),
 *     Denied, Invalid, Unsupported, Corrupt, NoMemory
 *
 * A destructor cannot say that a lock was lost. Whoever wants to know, and who does not, calls
 * release(), or uses with_lock, which does it when the body has succeeded; if the body throws, its
 * exception is the one that is heard.
 *
 * Times are std::chrono::milliseconds. Threads, blocking and fork are as holdfast.h says. */
#ifndef HOLDFAST_HPP
#define HOLDFAST_HPP

#include <holdfast.h>
#include <holdfast/elect.h>
#include <holdfast/once.h>
#include <holdfast/record.h>
#include <holdfast/several.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include <version>

#if defined(__cpp_lib_jthread)
#include <cerrno>
#include <poll.h>
#include <stop_token>
#include <sys/eventfd.h>
#include <thread>
#include <unistd.h>
#endif

namespace holdfast {

using milliseconds = std::chrono::milliseconds;
/* As a wait: without limit. What was counted down to a deadline never is that by accident. */
inline constexpr milliseconds forever = milliseconds::max();

/* What went wrong: a status and the library's sentence about it. */
struct Failure {
    hf_status status = HF_OK;
    std::string text;
    hf_loss reason = HF_LOSS_NONE; /* with HF_LOST, if it is known */
    milliseconds retry_after{0};   /* with HF_QUARANTINE */
};

#if defined(__cpp_exceptions)
struct Error : std::runtime_error {
    explicit Error(const Failure &why) : std::runtime_error(why.text), failure(why) {}
    hf_status status() const noexcept { return failure.status; }
    hf_loss reason() const noexcept { return failure.reason; }
    milliseconds retry_after() const noexcept { return failure.retry_after; }

    Failure failure;
};

/* One type for each status. */
template <hf_status> struct ErrorOf : Error {
    using Error::Error;
};
using Busy = ErrorOf<HF_BUSY>;
using Lost = ErrorOf<HF_LOST>;
using Stale = ErrorOf<HF_STALE>;
using Cancelled = ErrorOf<HF_CANCELLED>;
using Unknown = ErrorOf<HF_UNKNOWN>;
using Unreachable = ErrorOf<HF_UNREACHABLE>;
using Quarantine = ErrorOf<HF_QUARANTINE>;
using Denied = ErrorOf<HF_DENIED>;
using Invalid = ErrorOf<HF_INVALID>;
using Unsupported = ErrorOf<HF_UNSUPPORTED>;
using Corrupt = ErrorOf<HF_CORRUPT>;
using NoMemory = ErrorOf<HF_NOMEM>;

/* Throws the exception of a failure; HF_OK throws nothing. */
inline void raise(const Failure &failure)
{
    if (failure.status == HF_OK)
        return;
#define X(symbol, value, text)                                                                     \
    if (failure.status == symbol)                                                                  \
        throw ErrorOf<symbol>(failure);
    HF_STATUS_MAP(X)
#undef X
    throw Error(failure);
}
#endif

/* A value, or why there is none. */
template <class T> class [[nodiscard]] Result {
public:
    Result(T value = T()) : held_(std::in_place_index<0>, std::move(value)) {}
    Result(Failure failure) : held_(std::in_place_index<1>, std::move(failure)) {}
    explicit operator bool() const noexcept { return held_.index() == 0; }
    T &operator*() &noexcept { return *std::get_if<0>(&held_); }
    T *operator->() noexcept { return std::get_if<0>(&held_); }
    const Failure &failure() const noexcept { return *std::get_if<1>(&held_); }
#if defined(__cpp_exceptions)
    /* The value; throws if there is none. */
    T value() &&
    {
        if (!*this)
            raise(failure());
        return std::move(**this);
    }
#endif

private:
    std::variant<T, Failure> held_;
};

/* Of calls without a value. */
using Done = Result<std::monostate>;

/* A text for C, from a literal or a std::string: lives as long as what it was made of. One with a
 * NUL inside must not be taken for what stands before it: it becomes a line break, which the
 * library refuses. */
struct Text {
    Text(const char *text) noexcept : c(text) {}
    Text(const std::string &text) noexcept
        : c(text.find('\0') == std::string::npos ? text.c_str() : "\n")
    {}

    const char *c;
};

struct Options {

    Options(milliseconds ttl_ = {}, milliseconds wait_ = {}) : ttl(ttl_), wait(wait_) {}

    milliseconds ttl{0};  /* 0: 30s, or what the store grants */
    milliseconds wait{0}; /* 0: do not wait; forever: without limit */
    std::string label;    /* what others see; "": host/pid/program */
    int cancel_fd = 0;    /* 0: none; else stop waiting when it becomes readable */
    bool keeper = true;   /* false: the caller renews */
    bool spread = false;  /* of any(): true: begins with a random name */
};

/* Of any() and all(): up to HF_SEVERAL_MAX, none of them twice. */
using Names = std::vector<std::string>;

struct ElectOptions : Options { /* wait is without limit, and there is a keeper */
    std::string address;        /* where the leader is to be found; "": that is not told */
};

/* As struct hf_once_options has them. The lock is kept, and wait counts from the call of once. */
struct OnceOptions : Options {
    milliseconds per{0}; /* 0: once for ever */
    std::string at, tz;  /* "03:00", "Europe/Berlin"; "": midnight, UTC */
    milliseconds slack{0}, start_by{0}, keep{0}, retry_after{0};
    std::uint32_t retries = 0;
    bool hold_crashed = false;
};

/* What became of a slot. */
struct Once {
    enum hf_once_outcome outcome; /* HF_ONCE_DONE, _FAILED, _LATE or _HELD */
    bool ran;                     /* by this call; false: by another, if at all */
    std::string slot, by, text;   /* text: all of it in a sentence */
    std::uint64_t token, code;    /* of that run; 0: none is on record */
    std::string output;           /* what was kept of it */
    std::string warning;          /* worth showing; "": none */
};

/* One lock as a listing shows it; as struct hf_lock_info. */
struct LockInfo {
    std::string name, label;
    std::uint64_t token;
    milliseconds remaining, age;
    std::uint64_t waiters;
    bool held, detached, foreign;
};

/* As struct hf_record. */
struct Record {
    std::string key, value;
    std::uint64_t token, number;
    std::chrono::system_clock::time_point written;
    std::optional<std::chrono::system_clock::time_point> until; /* none: for ever */
};

/* As struct hf_leader. */
struct Leader {
    std::uint64_t term;
    std::string label, address;
    milliseconds age, remaining;
};

namespace detail {

/* What a call answered: the value, or why there is none. */
template <class T = std::monostate>
Result<T> result(hf_status status, const hf_error &err, hf_loss loss = HF_LOSS_NONE, T value = {})
{
    if (status != HF_OK)
        return Failure{status, err.text, status == HF_LOST ? loss : HF_LOSS_NONE,
                       milliseconds(err.retry_after_ms)};
    return value;
}

/* What question(value, &err) fills in, if it answers HF_OK. */
template <class T, class C = T, class F> Result<T> ask(F &&question, C value = C())
{
    hf_error err;
    hf_status status = question(value, &err);

    return result(status, err, HF_LOSS_NONE, T(std::move(value)));
}

inline std::uint32_t ttl_of(milliseconds ttl)
{
    /* What cannot be a ttl, a negative one too, becomes the largest number, which is refused. */
    return std::uint32_t(std::min(std::uint64_t(ttl.count()), std::uint64_t{UINT32_MAX}));
}

/* A time that is over already is no wait. */
inline std::int64_t wait_of(milliseconds wait)
{
    return wait == forever ? -1 : std::max(wait.count(), milliseconds::rep());
}

#if defined(__cpp_lib_jthread)
using Stop = std::stop_token;

/* A descriptor that becomes readable. */
struct Event {
    ~Event() { close(fd); }
    void operator()() const noexcept { eventfd_write(fd, 1); }
    int fd = eventfd(0, EFD_CLOEXEC);
};

/* One that does with the stop. */
struct StopEvent : Event {
    explicit StopEvent(const Stop &stop) : tell(stop, *this) {}
    std::stop_callback<const Event &> tell;
};

/* The descriptor that ends a wait, as long as *keep is kept. */
inline int fd_of(const Stop &stop, int cancel_fd, std::shared_ptr<void> &keep)
{
    if (!stop.stop_possible())
        return cancel_fd;
    auto event = std::make_shared<StopEvent>(stop);
    keep = event;
    /* 0, where stdin was closed, is none to the library; while that is kept the next is another. */
    return event->fd != 0 ? event->fd : fd_of(stop, cancel_fd, keep);
}

/* Waits until one of these leases is lost, and then asks for a stop; at once if there are no
 * descriptors to hear of it by: -1 & 0x7fffffff is none that poll would wait for. */
struct LossWatch {
    template <class T> LossWatch(const T *leases, std::size_t count)
    {
        std::vector<pollfd> fds(1);

        for (std::size_t i = 0; i < count; i++)
            fds.push_back({leases[i].fd() & 0x7fffffff, POLLIN, 0});
        thread = std::jthread([fds, source = source](std::stop_token over) mutable {
            StopEvent wake(over);

            fds[0] = {wake.fd & 0x7fffffff, POLLIN, 0};
            while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR)
                continue;
            if (!over.stop_requested())
                source.request_stop();
        });
    }
    /* Waits for the thread, unless this is the thread: who is told of the loss may release. */
    ~LossWatch()
    {
        if (thread.get_id() == std::this_thread::get_id())
            thread.detach();
    }
    std::stop_source source;
    std::jthread thread;
};

/* The stop token of a watch, which begins with the first call. */
template <class T> Stop watched(std::shared_ptr<void> &watch, const T *leases, std::size_t count)
{
    if (!watch)
        watch = std::make_shared<LossWatch>(leases, count);
    return std::static_pointer_cast<LossWatch>(watch)->source.get_token();
}
#else
struct Stop {};

inline int fd_of(const Stop &, int cancel_fd, std::shared_ptr<void> &)
{
    return cancel_fd;
}
#endif

inline const char *text_or_null(const std::string &text)
{
    return text.empty() ? nullptr : Text(text).c;
}

/* Options as C has them. They live as long as those that they were made of. */
template <class C> struct Given : C {
    explicit Given(const Options &options, const Stop &stop = {}) : C{}
    {
        C::size = sizeof(C);
        C::ttl_ms = ttl_of(options.ttl);
        C::label = text_or_null(options.label);
        C::cancel_fd = fd_of(stop, options.cancel_fd, event);
    }
    std::shared_ptr<void> event;
};

struct Acquire : Given<hf_acquire_options> {
    Acquire(const Options &options, const Stop &stop) : Given(options, stop)
    {
        wait_ms = wait_of(options.wait);
        no_keeper = !options.keeper;
        spread = options.spread;
    }
};

struct Job : Given<hf_once_options> {
    Job(const OnceOptions &options, const Stop &stop) : Given(options, stop)
    {
        wait_ms = wait_of(options.wait);
        per_ms = options.per.count();
        at = text_or_null(options.at);
        tz = text_or_null(options.tz);
        slack_ms = options.slack.count();
        start_by_ms = options.start_by.count();
        keep_ms = options.keep.count();
        retries = options.retries;
        retry_after_ms = options.retry_after.count();
        hold_crashed = options.hold_crashed;
    }
};

inline Once once_of(const hf_once *c, bool ran, const hf_error &err)
{
    const hf_once_record *record = hf_once_on_record(c);

    if (record == nullptr)
        return {hf_once_outcome(c), ran, hf_once_slot(c), "", hf_once_text(c), 0, 0, "", err.text};
    std::string output(static_cast<const char *>(record->output), record->output_len);

    return {hf_once_outcome(c), ran,          hf_once_slot(c), record->by, hf_once_text(c),
            record->token,      record->code, output,          err.text};
}

/* Live as long as the names do. */
inline std::vector<const char *> texts_of(const Names &names)
{
    std::vector<const char *> texts;

    for (const std::string &name : names)
        texts.push_back(Text(name).c);
    return texts;
}

/* A function for C that calls a C++ one. What it throws must not pass through C: it is kept. */
template <class F> struct Callback {
    explicit Callback(F body_) : body(std::move(body_)) {}
    template <class R = bool, class T> static R call(T *what, void *data) noexcept
    {
        Callback *self = static_cast<Callback *>(data);
#if defined(__cpp_exceptions)
        try {
            return static_cast<R>(self->body(what));
        } catch (...) {
            self->thrown = std::current_exception();
            return static_cast<R>(false);
        }
#else
        return static_cast<R>(self->body(what));
#endif
    }
    /* To be called with the answer of the C function. */
    hf_status over(hf_status status) const
    {
        if (thrown)
            std::rethrow_exception(thrown);
        return status;
    }
    F body;
    std::exception_ptr thrown;
};

inline Record record_of(const hf_record &c)
{
    using Time = std::chrono::system_clock::time_point;
    std::string value(static_cast<const char *>(c.value), c.value_len);
    auto until = c.until_ms != 0 ? std::optional(Time(milliseconds(c.until_ms))) : std::nullopt;

    return {c.key, value, c.token, c.number, Time(milliseconds(c.written_ms)), until};
}

inline LockInfo lock_of(const hf_lock_info &c)
{
    milliseconds remaining(c.remaining_ms), age(c.age_ms);

    return {c.name, c.label, c.token, remaining, age, c.waiters, c.held, c.detached, c.foreign};
}

inline Leader leader_of(const struct hf_leader &c)
{
    return {c.term, c.label, c.address, milliseconds(c.age_ms), milliseconds(c.remaining_ms)};
}

/* What list(args...) hands to its callback: all of it in a vector, or the only one there can be. */
template <template <class...> class Out = std::vector, class T, class C, class F, class... Args>
Result<Out<T>> rows(T (*row_of)(const C &), F *list, Args... args)
{
    return ask<Out<T>>([&](Out<T> &out, hf_error *err) {
        Callback add([&](const C *c) {
            if constexpr (std::is_same_v<Out<T>, std::optional<T>>)
                out = row_of(*c);
            else
                out.push_back(row_of(*c));
            return true;
        });
        return add.over(list(args..., &decltype(add)::call, &add, err));
    });
}

/* body(held), and then its release. */
template <class T, class F> auto under(T held, F &body)
{
    if constexpr (std::is_void_v<std::invoke_result_t<F, T &>>) {
        body(held);
        held.release();
    } else {
        auto out = body(held);
        held.release();
        return out;
    }
}

/* Who gives a lease back. */
enum class Owner { CALLER, LEASES, LENDER };

/* The end of a lease that nobody released. */
struct Giver {
    void operator()(hf_lease *lease) noexcept
    {
        watch.reset();
        if (owner != Owner::LENDER)
            (void)!hf_release(lease, nullptr);
    }
    Owner owner = Owner::CALLER;
    std::shared_ptr<void> watch; /* a LossWatch; the layout is that of every standard */
};

} // namespace detail

/* std::stop_token, which ends a wait in place of Options::cancel_fd; nothing before C++20. */
using detail::Stop;

/* A held lock. Its scope gives it back. */
class Lease {
public:
    explicit Lease(hf_lease *lease = nullptr, detail::Owner owner = detail::Owner::CALLER) noexcept
        : lease_(lease, {owner, nullptr})
    {}

    /* The fencing token, never 0: give it to what you write to. */
    std::uint64_t token() const noexcept { return hf_lease_token(handle()); }
    std::string name() const { return hf_lease_name(handle()); }
    milliseconds ttl() const noexcept { return milliseconds(hf_lease_ttl_ms(handle())); }
    /* <= 0: do not write any more. */
    milliseconds remaining() const noexcept
    {
        return milliseconds(hf_lease_remaining_ms(handle()));
    }
    bool held() const noexcept { return hf_lease_remaining_ms(handle()) > 0; }
    hf_loss loss() const noexcept { return hf_lease_loss(handle()); }
    /* Becomes readable once the lease is lost; -1: none to be had. */
    int fd() const noexcept { return hf_lease_fd(handle()); }
    /* For the rest of holdfast.h. */
    hf_lease *handle() const noexcept { return lease_.get(); }

    /* Whether anything remains: the line to put before a write. The sentence is the library's own:
     * what is over is never renewed. */
    Done try_check() const { return held() ? Done() : try_renew(); }
    /* Extends it to ttl from now (0: the ttl it has). */
    Done try_renew(milliseconds ttl = {}) const
    {
        hf_error err;
        hf_status status = hf_renew(handle(), detail::ttl_of(ttl), &err);

        return detail::result(status, err, loss());
    }
    /* Gives it back. The lease is over, whatever is returned. */
    Done try_release()
    {
        if (lease_.get_deleter().owner != detail::Owner::CALLER)
            return Failure{HF_INVALID, "whoever lent this lease gives it back"};
        hf_error err;
        hf_loss loss;

        lease_.get_deleter().watch.reset();
        hf_status status = hf_release_why(lease_.release(), &loss, &err);

        return detail::result(status, err, loss);
    }
    /* Puts a record beside the lock; keep 0: for ever. Returns a warning worth showing, or "". */
    Result<std::string> try_put(Text key, const std::string &value, milliseconds keep = {})
    {
        hf_error err;
        hf_status status =
            hf_record_put(handle(), key.c, value.data(), value.size(), keep.count(), &err);

        return detail::result(status, err, loss(), std::string(err.text));
    }

#if defined(__cpp_exceptions)
    // clang-format off
    void check() const { try_check().value(); }
    void renew(milliseconds ttl = {}) { try_renew(ttl).value(); }
    void release() { try_release().value(); }
    std::string put(Text key, const std::string &value, milliseconds keep = {}) { return try_put(key, value, keep).value(); }
    // clang-format on
#endif
#if defined(__cpp_lib_jthread)
    /* Asked to stop once the lease is lost. The first call starts a thread that waits for that, and
     * calls what was registered. No other thread may make the first call at the same time. */
    // clang-format off
    std::stop_token stop_token() { return detail::watched(lease_.get_deleter().watch, this, 1); }
    // clang-format on
#endif

private:
    friend class Leases;
    friend class Store;
    std::unique_ptr<hf_lease, detail::Giver> lease_;
};

/* What once() lends to the work: the lock, while it is ours. */
class Turn : public Lease {
public:
    explicit Turn(const hf_once *once)
        : Lease(hf_once_lease(once), detail::Owner::LENDER), slot(hf_once_slot(once))
    {}
    const std::string slot; /* "2026-11-17": names what belongs to that night */
    std::string output;     /* to be kept on record: the end of it */
    /* What it means if the work does not succeed. HF_ONCE_END_CUT_OFF: it was told to stop. */
    hf_once_ending unless_done = HF_ONCE_END_FAILURE;
};

/* What all() took, in the order of the names. Their scope gives them back. The loss of one is the
 * loss of all. */
class Leases {
public:
    explicit Leases(std::size_t count = 0) : leases_(count) {}
    Leases(Leases &&other) noexcept = default;
    Leases &operator=(Leases &&other) noexcept = default;
    ~Leases() { watch_.reset(); }

    std::size_t size() const noexcept { return leases_.size(); }
    /* Each can be looked at and renewed; they are released together. */
    Lease &operator[](std::size_t i) { return leases_[i]; }
    std::vector<Lease>::iterator begin() noexcept { return leases_.begin(); }
    std::vector<Lease>::iterator end() noexcept { return leases_.end(); }
    /* Of the one that ends first. */
    milliseconds remaining() const noexcept
    {
        milliseconds least = milliseconds::max();

        for (const Lease &lease : leases_)
            least = std::min(least, lease.remaining());
        return least;
    }

    Done try_check() const
    {
        for (const Lease &lease : leases_)
            if (Done done = lease.try_check(); !done)
                return done;
        return {};
    }
    /* Gives them back, in the reverse order of their names. All are over, whatever is returned. */
    Done try_release()
    {
        Done all;

        watch_.reset();
        std::sort(leases_.begin(), leases_.end(),
                  [](const Lease &a, const Lease &b) { return a.name() < b.name(); });
        for (; !leases_.empty(); leases_.pop_back()) {
            leases_.back().lease_.get_deleter().owner = detail::Owner::CALLER;
            if (Done one = leases_.back().try_release();
                !one && (all || all.failure().status != HF_LOST))
                all = std::move(one);
        }
        return all;
    }

#if defined(__cpp_exceptions)
    // clang-format off
    void check() const { try_check().value(); }
    void release() { try_release().value(); }
    // clang-format on
#endif
#if defined(__cpp_lib_jthread)
    /* As Lease::stop_token: asked to stop once one of them is lost. */
    // clang-format off
    std::stop_token stop_token() { return detail::watched(watch_, leases_.data(), leases_.size()); }
    // clang-format on
#endif

private:
    friend class Store;
    std::shared_ptr<void> watch_; /* given up first */
    std::vector<Lease> leases_;
};

/* An open store. */
class Store {
public:
    /* url: "file:DIR", "redis://...", ...; "": the embedded store in its default folder. */
    static Result<Store> try_open(Text url, milliseconds wait = {}, int cancel_fd = 0)
    {
        hf_open_options c{sizeof c, detail::wait_of(wait), cancel_fd, nullptr, nullptr};
        return opened([&](auto **out, auto *err) { return hf_open_waiting(url.c, &c, out, err); });
    }
    /* For looking only: makes and changes nothing. */
    static Result<Store> try_open_readonly(Text url)
    {
        return opened([&](auto **out, auto *err) { return hf_open_readonly(url.c, out, err); });
    }

    std::string url() const { return hf_store_url(handle()); }
    unsigned features() const noexcept { return hf_store_features(handle()); }
    /* What opening it had to say, worth showing; "": nothing. */
    const std::string &warning() const noexcept { return warning_; }
    /* For the rest of holdfast.h. */
    hf_store *handle() const noexcept { return store_.get(); }

    /* stop: ends the wait. */
    Result<Lease> try_lock(Text name, const Options &options = {}, const Stop &stop = {})
    {
        detail::Acquire c(options, stop);

        return detail::ask<Lease, hf_lease *>([&](hf_lease *&out, hf_error *err) {
            return hf_acquire(handle(), name.c, &c, &out, err);
        });
    }
    /* One of several locks, the first that is free: its name() says which. Waits for all of them at
     * once. */
    Result<Lease> try_any(const Names &names, const Options &options = {}, const Stop &stop = {})
    {
        detail::Acquire c(options, stop);
        auto texts = detail::texts_of(names);
        std::size_t which;

        return detail::ask<Lease, hf_lease *>([&](hf_lease *&out, hf_error *err) {
            return hf_acquire_any(handle(), texts.data(), texts.size(), &c, &out, &which, err);
        });
    }
    /* Several locks, all or nothing, in one order for everybody: no two callers wait for each other. */
    Result<Leases> try_all(const Names &names, const Options &options = {}, const Stop &stop = {})
    {
        detail::Acquire c(options, stop);
        auto texts = detail::texts_of(names);

        std::vector<hf_lease *> handles(names.size());
        auto question = [&](Leases &out, hf_error *err) {
            hf_status status =
                hf_acquire_all(handle(), texts.data(), texts.size(), &c, handles.data(), err);

            for (std::size_t i = 0; i < handles.size(); i++)
                out.leases_[i] = Lease(handles[i], detail::Owner::LEASES);
            return status;
        };
        return detail::ask<Leases>(question, Leases(names.size()));
    }
    /* What is held or waited for. */
    Result<std::vector<LockInfo>> try_list(Text prefix = "")
    {
        return detail::rows(detail::lock_of, hf_list, handle(), prefix.c);
    }
    /* One lock; none: it is free. */
    Result<std::optional<LockInfo>> try_inspect(Text name)
    {
        return detail::rows<std::optional>(detail::lock_of, hf_inspect, handle(), name.c);
    }
    /* A record beside a lock; none: there is no such record. */
    Result<std::optional<Record>> try_get(Text name, Text key)
    {
        hf_error err;
        hf_record *c;
        hf_status status = hf_record_get(handle(), name.c, key.c, &c, nullptr, &err);
        std::unique_ptr<hf_record, void (*)(hf_record *)> guard(c, hf_record_free);
        auto record = c != nullptr ? std::optional(detail::record_of(*c)) : std::nullopt;

        return detail::result(status, err, HF_LOSS_NONE, record);
    }
    Result<std::vector<Record>> try_records(Text name, Text prefix = "")
    {
        return detail::rows(detail::record_of, hf_record_list, handle(), name.c, prefix.c);
    }
    /* Revokes the hold with that token, as list and inspect tell it: its holder hears of that, and
     * has the time until its deadline to end its work. now: ends the hold at once. */
    Done try_break(Text name, std::uint64_t token, Text reason = "", bool now = false)
    {
        hf_break_options c{sizeof c, nullptr, reason.c, now};
        hf_error err;

        return detail::result(hf_break(handle(), name.c, token, &c, nullptr, &err), err);
    }
    /* Who leads; none: nobody does. */
    Result<std::optional<Leader>> try_leader(Text name)
    {
        return detail::rows<std::optional>(detail::leader_of, ::hf_leader, handle(), name.c);
    }
    /* Stands for election, and calls lead(Lease &) for each term: true stands again, false ends it.
     * What lead throws ends it, too. */
    template <class F> Done try_elect(Text name, const ElectOptions &options, F &&lead)
    {
        hf_loss loss = HF_LOSS_NONE;
        detail::Callback body([&](hf_lease *lease) {
            Lease borrowed(lease, detail::Owner::LENDER);
            bool again = lead(borrowed);

            loss = borrowed.loss();
            return again;
        });
        detail::Given<hf_elect_options> c(options);
        hf_error err;

        c.address = detail::text_or_null(options.address);
        c.on_elected = &decltype(body)::call;
        c.data = &body;
        hf_status status = body.over(hf_elect(handle(), name.c, &c, &err));

        return detail::result(status, err, loss);
    }

    /* Calls work(Turn &) if the slot is ours to do, and says what became of it, here or elsewhere.
     * Work that returns false, or throws, has failed: that is on record, and is tried again if there
     * are retries; what the last attempt throws is thrown. Work that returns nothing succeeds. */
    template <class F>
    Result<Once> try_once(Text key, const OnceOptions &options, F &&work, const Stop &stop = {})
    {
        detail::Job c(options, stop);
        hf_error err;
        hf_loss loss = HF_LOSS_NONE;
        hf_once *job;
        hf_status status = hf_once_open(handle(), key.c, &c, &job, &err);
        std::unique_ptr<hf_once, void (*)(hf_once *)> once(job, hf_once_close);
        bool ran = false;

        while (status == HF_OK && !ran && (status = hf_once_begin(job, &err)) == HF_OK &&
               hf_once_outcome(job) == HF_ONCE_RUN) {
            detail::Callback body([&](Turn *turn) {
                if constexpr (std::is_void_v<std::invoke_result_t<F &, Turn &>>)
                    return work(*turn), true;
                else
                    return static_cast<bool>(work(*turn));
            });
            Turn turn(job);
            bool good = body.call(&turn, &body);

            loss = turn.loss();
            turn.lease_.reset(); /* nobody watches it any more */
            status = hf_once_end(job, good ? HF_ONCE_END_SUCCESS : turn.unless_done, !good,
                                 turn.output.data(), turn.output.size(), &err);
            ran = status != HF_OK || hf_once_outcome(job) != HF_ONCE_OPEN;
            status = ran ? body.over(status) : status; /* else it is tried again */
        }
        return detail::result(status, err, loss,
                              status == HF_OK ? detail::once_of(job, ran, err) : Once{});
    }

#if defined(__cpp_exceptions)
    /* Calls body(Lease &) under the lock. If it succeeded and the lock was lost, throws Lost. */
    // clang-format off
    template <class F> auto with_lock(Text name, const Options &options, F &&body) { return detail::under(lock(name, options), body); }
    /* The same with body(Leases &), under all of them. */
    template <class F> auto with_all(const Names &names, const Options &options, F &&body) { return detail::under(all(names, options), body); }
    explicit Store(Text url, milliseconds wait = {}) : Store(try_open(url, wait).value()) {}
    static Store open_readonly(Text url) { return try_open_readonly(url).value(); }
    Lease lock(Text name, const Options &options = {}, const Stop &stop = {}) { return try_lock(name, options, stop).value(); }
    Lease any(const Names &names, const Options &options = {}, const Stop &stop = {}) { return try_any(names, options, stop).value(); }
    Leases all(const Names &names, const Options &options = {}, const Stop &stop = {}) { return try_all(names, options, stop).value(); }
    std::vector<LockInfo> list(Text prefix = "") { return try_list(prefix).value(); }
    std::optional<LockInfo> inspect(Text name) { return try_inspect(name).value(); }
    std::optional<Record> get(Text name, Text key) { return try_get(name, key).value(); }
    std::vector<Record> records(Text name, Text prefix = "") { return try_records(name, prefix).value(); }
    void break_(Text name, std::uint64_t token, Text reason = "", bool now = false) { try_break(name, token, reason, now).value(); }
    std::optional<Leader> leader(Text name) { return try_leader(name).value(); }
    template <class F> Once once(Text key, const OnceOptions &options, F &&work, const Stop &stop = {}) { return try_once(key, options, work, stop).value(); }
    template <class F> void elect(Text name, const ElectOptions &options, F &&lead) { try_elect(name, options, lead).value(); }
    // clang-format on
#endif
private:
    Store(hf_store *store, const char *warning) : store_(store, hf_close), warning_(warning) {}

    /* A library older than this header may lack what it calls, or do it otherwise. */
    template <class F> static Result<Store> opened(F &&open)
    {
        int major = 0, minor = 0, patch = 0;
        bool fits = std::sscanf(hf_version(), "%d.%d.%d", &major, &minor, &patch) == 3 &&
                    major == HF_VERSION_MAJOR &&
                    std::pair(minor, patch) >= std::pair(HF_VERSION_MINOR, HF_VERSION_PATCH);

        if (!fits)
            return Failure{HF_UNSUPPORTED,
                           std::string("libholdfast ") + hf_version() +
                               " was loaded, but this program was compiled for " HF_VERSION_STRING
                               ": install that version of the library, or a later one"};
        hf_error err;
        hf_store *store;
        hf_status status = open(&store, &err);

        return detail::result(status, err, HF_LOSS_NONE, Store(store, err.text));
    }

    std::unique_ptr<hf_store, void (*)(hf_store *)> store_;
    std::string warning_;
};

} // namespace holdfast

#endif /* HOLDFAST_HPP */
