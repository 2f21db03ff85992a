/* cases_once.hpp - the cases of once: who does work that is to be done once, what the others hear, what stops it. */
#ifndef CASES_ONCE_HPP
#define CASES_ONCE_HPP

#include "cases.hpp"

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

#endif // CASES_ONCE_HPP
