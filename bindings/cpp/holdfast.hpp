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
#include <holdfast/record.h>
#include <holdfast/several.h>

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
/* As a wait: without limit. */
inline constexpr milliseconds forever{-1};

/* What went wrong: a status and the library's sentence about it. */
struct Failure {
    hf_status status = HF_OK;
    std::string text;
    hf_loss reason = HF_LOSS_NONE; /* with HF_LOST, if it is known */
    milliseconds retry_after{0};   /* with HF_QUARANTINE */
};

#if defined(__cpp_exceptions)
class Error : public std::runtime_error {
public:
    explicit Error(const Failure &failure) : std::runtime_error(failure.text), failure_(failure) {}
    hf_status status() const noexcept { return failure_.status; }
    hf_loss reason() const noexcept { return failure_.reason; }
    milliseconds retry_after() const noexcept { return failure_.retry_after; }

private:
    Failure failure_;
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
    switch (failure.status) {
#define X(symbol, value, text)                                                                     \
    case symbol:                                                                                   \
        if (symbol != HF_OK)                                                                       \
            throw ErrorOf<symbol>(failure);                                                        \
        return;
        HF_STATUS_MAP(X)
#undef X
    }
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

/* A text for C, from a literal or a std::string: lives as long as what it was made of. One
 * with a byte of 0 inside is not the text before it: the library refuses the line break that it
 * becomes. */
struct Text {
    Text(const char *text) noexcept : c(text) {}
    Text(const std::string &text) noexcept
        : c(text.find('\0') == std::string::npos ? text.c_str() : "\n")
    {}

    const char *c;
};

struct Options {
    Options() = default;
    Options(milliseconds ttl_, milliseconds wait_ = {}) : ttl(ttl_), wait(wait_) {}

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

/* Why a lease was lost: the text ends with it. To ask before each release would cost a look at the
 * clock, and after it there is nobody to ask. */
inline hf_loss reason_in(const std::string &text)
{
    for (hf_loss loss :
         {HF_LOSS_EXPIRED, HF_LOSS_TAKEN, HF_LOSS_UNREACHABLE, HF_LOSS_FORGOTTEN, HF_LOSS_CLOSED}) {
        std::string end = hf_loss_text(loss);

        if (text.size() > end.size() &&
            text.compare(text.size() - end.size(), end.size(), end) == 0)
            return loss;
    }
    return HF_LOSS_NONE;
}

inline Failure failure(hf_status status, const hf_error &err, bool broken = false)
{
    hf_loss lost = broken ? HF_LOSS_BROKEN : reason_in(err.text);
    hf_loss reason = status == HF_LOST ? lost : HF_LOSS_NONE;

    return {status, err.text, reason, milliseconds(err.retry_after_ms)};
}

inline Done done(hf_status status, const hf_error &err, bool broken = false)
{
    return status == HF_OK ? Done() : Done(failure(status, err, broken));
}

/* What question(value, &err) fills in, if it answers HF_OK. */
template <class T, class F> Result<T> ask(F &&question, T value = T())
{
    hf_error err;
    hf_status status = question(value, &err);

    if (status != HF_OK)
        return failure(status, err);
    return value;
}

inline std::uint32_t ttl_of(milliseconds ttl)
{
    /* What is no ttl stays none: the library says so. */
    return ttl.count() < 0 || ttl.count() > UINT32_MAX ? UINT32_MAX
                                                       : static_cast<std::uint32_t>(ttl.count());
}

/* A time that is over already is no wait. */
inline std::int64_t wait_of(milliseconds wait)
{
    return wait.count() < forever.count() ? 0 : wait.count();
}

/* Lives as long as the options do. */
inline hf_acquire_options options_of(const Options &options)
{
    hf_acquire_options c{};

    c.size = sizeof c;
    c.ttl_ms = ttl_of(options.ttl);
    c.wait_ms = wait_of(options.wait);
    c.label = options.label.empty() ? nullptr : options.label.c_str();
    c.cancel_fd = options.cancel_fd;
    c.no_keeper = !options.keeper;
    c.spread = options.spread;
    return c;
}

/* Live as long as the names do. */
inline std::vector<const char *> texts_of(const Names &names)
{
    std::vector<const char *> texts;

    for (const std::string &name : names)
        texts.push_back(Text(name).c);
    return texts;
}

/* A library older than this header may lack what it calls, or do it otherwise. HF_OK: it is not. */
inline Failure misfit(const char *running)
{
    int major = 0, minor = 0, patch = 0;
    std::string text = std::string("libholdfast ") + running +
                       " was loaded, but this program was compiled for " HF_VERSION_STRING
                       ": install that version of the library, or a later one";
    bool fits = std::sscanf(running, "%d.%d.%d", &major, &minor, &patch) == 3 &&
                major == HF_VERSION_MAJOR &&
                std::pair(minor, patch) >= std::pair(HF_VERSION_MINOR, HF_VERSION_PATCH);

    return {fits ? HF_OK : HF_UNSUPPORTED, text, {}, {}};
}

/* A function for C that calls a C++ one. What it throws must not pass through C: it is kept. */
template <class T, class F> class Callback {
public:
    explicit Callback(F body) : body_(std::move(body)) {}
    static bool call(T *what, void *data) noexcept
    {
        Callback *self = static_cast<Callback *>(data);
#if defined(__cpp_exceptions)
        try {
            return self->body_(what);
        } catch (...) {
            self->thrown_ = std::current_exception();
            return false;
        }
#else
        return self->body_(what);
#endif
    }
    /* To be called with the answer of the C function. */
    hf_status over(hf_status status) const
    {
        if (thrown_)
            std::rethrow_exception(thrown_);
        return status;
    }

private:
    F body_;
    std::exception_ptr thrown_;
};

template <class T, class F> Callback<T, F> callback(F body)
{
    return Callback<T, F>(std::move(body));
}

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

#if defined(__cpp_lib_jthread)
/* A descriptor that becomes readable. */
struct Event {
    ~Event() { close(fd); }
    int fd = eventfd(0, EFD_CLOEXEC);
};

/* Waits until one of these leases is lost, and then asks for a stop. */
class LossWatch {
public:
    explicit LossWatch(hf_lease *const *leases, std::size_t count)
        : wake_(std::make_shared<Event>())
    {
        std::vector<pollfd> fds{{wake_->fd, POLLIN, 0}};

        for (std::size_t i = 0; i < count; i++)
            fds.push_back({hf_lease_fd(leases[i]), POLLIN, 0});
        thread_ = std::thread([wake = wake_, fds, source = source_]() mutable {
            while (poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR)
                continue;
            if (fds[0].revents == 0)
                source.request_stop();
        });
    }
    ~LossWatch()
    {
        eventfd_write(wake_->fd, 1);
        /* It may be the one who was told that releases the lease. */
        if (thread_.get_id() == std::this_thread::get_id())
            thread_.detach();
        else
            thread_.join();
    }
    std::stop_token token() const { return source_.get_token(); }

private:
    std::shared_ptr<Event> wake_;
    std::stop_source source_;
    std::thread thread_;
};
#endif

} // namespace detail

/* A held lock. Its scope gives it back. */
class Lease {
public:
    explicit Lease(hf_lease *lease = nullptr, bool borrowed = false) noexcept
        : lease_(lease), borrowed_(borrowed)
    {}
    Lease(Lease &&other) noexcept
        : watch_(std::move(other.watch_)), lease_(std::exchange(other.lease_, nullptr)),
          borrowed_(other.borrowed_)
    {}
    Lease &operator=(Lease other) noexcept
    {
        std::swap(watch_, other.watch_);
        std::swap(lease_, other.lease_);
        std::swap(borrowed_, other.borrowed_);
        return *this;
    }
    ~Lease() { end(); }

    /* The fencing token, never 0: give it to what you write to. */
    std::uint64_t token() const noexcept { return hf_lease_token(lease_); }
    std::string name() const { return hf_lease_name(lease_); }
    milliseconds ttl() const noexcept { return milliseconds(hf_lease_ttl_ms(lease_)); }
    /* <= 0: do not write any more. */
    milliseconds remaining() const noexcept { return milliseconds(hf_lease_remaining_ms(lease_)); }
    bool held() const noexcept { return hf_lease_remaining_ms(lease_) > 0; }
    hf_loss loss() const noexcept { return hf_lease_loss(lease_); }
    /* Whether somebody broke it, although it may last for a while. */
    bool broken() const noexcept
    {
        hf_revocation by;

        return lease_ != nullptr && hf_lease_revocation(lease_, &by);
    }
    /* Becomes readable once the lease is lost; -1: none to be had. */
    int fd() const noexcept { return hf_lease_fd(lease_); }
    /* For the rest of holdfast.h. */
    hf_lease *handle() const noexcept { return lease_; }

    /* Whether anything remains: the line to put before a write. */
    Done try_check() const
    {
        hf_error err;

        /* The library's own sentence: what is over is never renewed. */
        return held() ? Done() : detail::done(hf_renew(lease_, 0, &err), err, broken());
    }
    /* Extends it to ttl from now (0: the ttl it has). */
    Done try_renew(milliseconds ttl = {})
    {
        hf_error err;

        hf_status status = hf_renew(lease_, detail::ttl_of(ttl), &err);

        return detail::done(status, err, broken());
    }
    /* Gives it back. The lease is over, whatever is returned. */
    Done try_release()
    {
        hf_error err;

        if (borrowed_)
            return Failure{HF_INVALID, "whoever lent this lease gives it back", {}, {}};
        bool was_broken = broken();

        watch_.reset();
        return detail::done(hf_release(std::exchange(lease_, nullptr), &err), err, was_broken);
    }
    /* Puts a record beside the lock; keep 0: for ever. Returns a warning worth showing, or "". */
    Result<std::string> try_put(Text key, const std::string &value, milliseconds keep = {})
    {
        return detail::ask<std::string>([&](std::string &out, hf_error *err) {
            hf_status status =
                hf_record_put(lease_, key.c, value.data(), value.size(), keep.count(), err);

            out = err->text;
            return status;
        });
    }

#if defined(__cpp_exceptions)
    // clang-format off
    void check() const { if (!held()) try_check().value(); }
    void renew(milliseconds ttl = {}) { try_renew(ttl).value(); }
    void release() { try_release().value(); }
    std::string put(Text key, const std::string &value, milliseconds keep = {}) { return try_put(key, value, keep).value(); }
    // clang-format on
#endif
#if defined(__cpp_lib_jthread)
    /* Asked to stop once the lease is lost. The first call starts a thread that waits for that, and
     * calls what was registered. No other thread may make the first call at the same time. */
    std::stop_token stop_token()
    {
        if (!watch_)
            watch_ = std::make_shared<detail::LossWatch>(&lease_, 1);
        return std::static_pointer_cast<detail::LossWatch>(watch_)->token();
    }
#endif

private:
    friend class Store;
    void end() noexcept
    {
        hf_error err;

        watch_.reset();
        if (!borrowed_ && hf_release(lease_, &err) != HF_OK) {
            /* A destructor has nobody to tell. */
        }
    }

    std::shared_ptr<void> watch_; /* a detail::LossWatch; the layout is that of every standard */
    hf_lease *lease_;
    bool borrowed_; /* of an election, or of Leases, which give it back */
};

/* What all() took, in the order of the names. Their scope gives them back. The loss of one is the
 * loss of all. */
class Leases {
public:
    explicit Leases(std::size_t count = 0) : handles_(count) {}
    Leases(Leases &&other) noexcept = default;
    Leases &operator=(Leases other) noexcept
    {
        std::swap(watch_, other.watch_);
        std::swap(handles_, other.handles_);
        std::swap(leases_, other.leases_);
        return *this;
    }
    ~Leases()
    {
        watch_.reset();
        if (hf_release_all(handles_.data(), handles_.size(), nullptr) != HF_OK) {
            /* A destructor has nobody to tell. */
        }
    }

    std::size_t size() const noexcept { return leases_.size(); }
    /* Each can be looked at and renewed; they are released together. */
    Lease &operator[](std::size_t i) { return leases_[i]; }
    std::vector<Lease>::iterator begin() noexcept { return leases_.begin(); }
    std::vector<Lease>::iterator end() noexcept { return leases_.end(); }
    /* Of the one that ends first. */
    milliseconds remaining() const noexcept
    {
        return milliseconds(hf_all_remaining_ms(handles_.data(), handles_.size()));
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
        hf_error err;
        bool broken = false;

        for (const Lease &lease : leases_)
            broken = broken || lease.broken();
        watch_.reset();
        leases_.clear();
        return detail::done(hf_release_all(handles_.data(), handles_.size(), &err), err, broken);
    }

#if defined(__cpp_exceptions)
    void check() const
    {
        try_check().value();
    }
    void release()
    {
        try_release().value();
    }
#endif
#if defined(__cpp_lib_jthread)
    /* As Lease::stop_token: asked to stop once one of them is lost. */
    std::stop_token stop_token()
    {
        if (!watch_)
            watch_ = std::make_shared<detail::LossWatch>(handles_.data(), handles_.size());
        return std::static_pointer_cast<detail::LossWatch>(watch_)->token();
    }
#endif

private:
    friend class Store;
    std::shared_ptr<void> watch_;
    std::vector<hf_lease *> handles_; /* released together; leases_ borrows them */
    std::vector<Lease> leases_;
};

/* An open store. */
class Store {
public:
    /* url: "file:DIR", "redis://...", ...; "": the embedded store in its default folder. */
    static Result<Store> try_open(Text url, milliseconds wait = {}, int cancel_fd = 0)
    {
        hf_open_options c{};
        Failure misfit = detail::misfit(hf_version());

        if (misfit.status != HF_OK)
            return misfit;
        c.size = sizeof c;
        c.wait_ms = detail::wait_of(wait);
        c.cancel_fd = cancel_fd;
        return opened([&](auto **out, auto *err) { return hf_open_waiting(url.c, &c, out, err); });
    }
    /* For looking only: makes and changes nothing. */
    static Result<Store> try_open_readonly(Text url)
    {
        return opened([&](auto **out, auto *err) { return hf_open_readonly(url.c, out, err); });
    }

    std::string url() const { return hf_store_url(store_.get()); }
    unsigned features() const noexcept { return hf_store_features(store_.get()); }
    /* What opening it had to say, worth showing; "": nothing. */
    const std::string &warning() const noexcept { return warning_; }
    /* For the rest of holdfast.h. */
    hf_store *handle() const noexcept { return store_.get(); }

    Result<Lease> try_lock(Text name, const Options &options = {})
    {
        hf_acquire_options c = detail::options_of(options);

        return detail::ask<Lease>([&](Lease &out, hf_error *err) {
            return hf_acquire(store_.get(), name.c, &c, &out.lease_, err);
        });
    }
    /* One of several locks, the first that is free: its name() says which. Waits for all of them at
     * once. */
    Result<Lease> try_any(const Names &names, const Options &options = {})
    {
        hf_acquire_options c = detail::options_of(options);
        auto texts = detail::texts_of(names);
        std::size_t which;

        return detail::ask<Lease>([&](Lease &out, hf_error *err) {
            return hf_acquire_any(store_.get(), texts.data(), texts.size(), &c, &out.lease_, &which,
                                  err);
        });
    }
    /* Several locks, all or nothing, in one order for everybody: no two callers wait for each other. */
    Result<Leases> try_all(const Names &names, const Options &options = {})
    {
        hf_acquire_options c = detail::options_of(options);
        auto texts = detail::texts_of(names);
        auto question = [&](Leases &out, hf_error *err) {
            hf_status status = hf_acquire_all(store_.get(), texts.data(), texts.size(), &c,
                                              out.handles_.data(), err);

            for (hf_lease *lease : out.handles_)
                out.leases_.emplace_back(lease, true);
            return status;
        };
        return detail::ask<Leases>(question, Leases(names.size()));
    }
    /* What is held or waited for. */
    Result<std::vector<LockInfo>> try_list(Text prefix = "")
    {
        return detail::ask<std::vector<LockInfo>>([&](std::vector<LockInfo> &out, hf_error *err) {
            auto add = detail::callback<const hf_lock_info>([&](const hf_lock_info *c) {
                out.push_back(detail::lock_of(*c));
                return true;
            });
            return add.over(hf_list(store_.get(), prefix.c, add.call, &add, err));
        });
    }
    /* One lock; none: it is free. */
    Result<std::optional<LockInfo>> try_inspect(Text name)
    {
        return detail::ask<std::optional<LockInfo>>(
            [&](std::optional<LockInfo> &out, hf_error *err) {
                auto keep = detail::callback<const hf_lock_info>([&](const hf_lock_info *c) {
                    out = detail::lock_of(*c);
                    return false;
                });
                return keep.over(hf_inspect(store_.get(), name.c, keep.call, &keep, err));
            });
    }
    /* A record beside a lock; none: there is no such record. */
    Result<std::optional<Record>> try_get(Text name, Text key)
    {
        return detail::ask<std::optional<Record>>([&](std::optional<Record> &out, hf_error *err) {
            hf_record *c;
            hf_status status = hf_record_get(store_.get(), name.c, key.c, &c, nullptr, err);
            std::unique_ptr<hf_record, void (*)(hf_record *)> guard(c, hf_record_free);

            if (c != nullptr)
                out = detail::record_of(*c);
            return status;
        });
    }
    Result<std::vector<Record>> try_records(Text name, Text prefix = "")
    {
        return detail::ask<std::vector<Record>>([&](std::vector<Record> &out, hf_error *err) {
            auto add = detail::callback<const hf_record>([&](const hf_record *c) {
                out.push_back(detail::record_of(*c));
                return true;
            });
            return add.over(hf_record_list(store_.get(), name.c, prefix.c, add.call, &add, err));
        });
    }
    /* Revokes the hold with that token, as list and inspect tell it: its holder hears of that, and
     * has the time until its deadline to end its work. now: ends the hold at once. */
    Done try_break(Text name, std::uint64_t token, Text reason = "", bool now = false)
    {
        hf_break_options c{};
        hf_error err;

        c.size = sizeof c;
        c.reason = reason.c;
        c.now = now;
        return detail::done(hf_break(store_.get(), name.c, token, &c, nullptr, &err), err);
    }
    /* Who leads; none: nobody does. */
    Result<std::optional<Leader>> try_leader(Text name)
    {
        return detail::ask<std::optional<Leader>>([&](std::optional<Leader> &out, hf_error *err) {
            auto keep = detail::callback<const struct hf_leader>([&](const struct hf_leader *c) {
                milliseconds age(c->age_ms), remaining(c->remaining_ms);

                out = Leader{c->term, c->label, c->address, age, remaining};
                return true;
            });
            hf_leader_fn *fn = [](const struct hf_leader *c, void *data) {
                decltype(keep)::call(c, data);
            };
            return keep.over(::hf_leader(store_.get(), name.c, fn, &keep, err));
        });
    }
    /* Stands for election, and calls lead(Lease &) for each term: true stands again, false ends it.
     * What lead throws ends it, too. */
    template <class F> Done try_elect(Text name, const ElectOptions &options, F &&lead)
    {
        auto body = detail::callback<hf_lease>([&](hf_lease *lease) {
            Lease borrowed(lease, true);

            return static_cast<bool>(lead(borrowed));
        });
        hf_elect_options c{};
        hf_error err;

        c.size = sizeof c;
        c.ttl_ms = detail::ttl_of(options.ttl);
        c.label = options.label.empty() ? nullptr : options.label.c_str();
        c.address = options.address.empty() ? nullptr : options.address.c_str();
        c.cancel_fd = options.cancel_fd;
        c.on_elected = body.call;
        c.data = &body;
        return detail::done(body.over(hf_elect(store_.get(), name.c, &c, &err)), err);
    }

#if defined(__cpp_exceptions)
    /* Calls body(Lease &) under the lock. If it succeeded and the lock was lost, throws Lost. */
    template <class F>
    std::invoke_result_t<F, Lease &> with_lock(Text name, const Options &options, F &&body)
    {
        return under(lock(name, options), body);
    }
    /* The same with body(Leases &), under all of them. */
    template <class F>
    std::invoke_result_t<F, Leases &> with_all(const Names &names, const Options &options, F &&body)
    {
        return under(all(names, options), body);
    }
    // clang-format off
    explicit Store(Text url, milliseconds wait = {}) : Store(try_open(url, wait).value()) {}
    static Store open_readonly(Text url) { return try_open_readonly(url).value(); }
    Lease lock(Text name, const Options &options = {}) { return try_lock(name, options).value(); }
    Lease any(const Names &names, const Options &options = {}) { return try_any(names, options).value(); }
    Leases all(const Names &names, const Options &options = {}) { return try_all(names, options).value(); }
    std::vector<LockInfo> list(Text prefix = "") { return try_list(prefix).value(); }
    std::optional<LockInfo> inspect(Text name) { return try_inspect(name).value(); }
    std::optional<Record> get(Text name, Text key) { return try_get(name, key).value(); }
    std::vector<Record> records(Text name, Text prefix = "") { return try_records(name, prefix).value(); }
    void break_(Text name, std::uint64_t token, Text reason = "", bool now = false) { try_break(name, token, reason, now).value(); }
    std::optional<Leader> leader(Text name) { return try_leader(name).value(); }
    template <class F> void elect(Text name, const ElectOptions &options, F &&lead) { try_elect(name, options, lead).value(); }
    // clang-format on
#endif
#if defined(__cpp_lib_jthread)
    /* The same, cancelled by a stop token instead of a descriptor. */
    // clang-format off
    Result<Lease> try_lock(Text name, const Options &options, std::stop_token stop) { return try_lock(name, Stoppable(options, stop)); }
    Result<Lease> try_any(const Names &names, const Options &options, std::stop_token stop) { return try_any(names, Stoppable(options, stop)); }
    Result<Leases> try_all(const Names &names, const Options &options, std::stop_token stop) { return try_all(names, Stoppable(options, stop)); }
#if defined(__cpp_exceptions)
    Lease lock(Text name, const Options &options, std::stop_token stop) { return try_lock(name, options, stop).value(); }
    Lease any(const Names &names, const Options &options, std::stop_token stop) { return try_any(names, options, stop).value(); }
    Leases all(const Names &names, const Options &options, std::stop_token stop) { return try_all(names, options, stop).value(); }
#endif
    // clang-format on
#endif

private:
    Store() = default;

#if defined(__cpp_exceptions)
    template <class T, class F> static std::invoke_result_t<F, T &> under(T held, F &body)
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
#endif
#if defined(__cpp_lib_jthread)
    /* Options whose cancel_fd becomes readable with the stop. */
    struct Stoppable : Options {
        Stoppable(const Options &options, std::stop_token stop)
            : Options(options), tell_(std::move(stop), Tell{&event_})
        {
            cancel_fd = event_.fd;
        }

        struct Tell {
            detail::Event *event;
            void operator()() const noexcept { eventfd_write(event->fd, 1); }
        };
        detail::Event event_;
        std::stop_callback<Tell> tell_;
    };
#endif

    template <class F> static Result<Store> opened(F &&open)
    {
        auto question = [&](Store &out, hf_error *err) {
            hf_store *store;
            hf_status status = open(&store, err);

            out.store_.reset(store);
            out.warning_ = err->text;
            return status;
        };
        return detail::ask<Store>(question, Store());
    }

    std::unique_ptr<hf_store, void (*)(hf_store *)> store_{nullptr, hf_close};
    std::string warning_;
};

} // namespace holdfast

#endif /* HOLDFAST_HPP */
