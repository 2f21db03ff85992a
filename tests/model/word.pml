/* word.pml - one lock of the embedded store: its word, its queue, and those who take, renew, hand over,
 * wait for, break and lose it.
 *
 * A step of a client is one look at shared memory, one compare-and-swap of the word, or what it does under
 * the guard and nobody reads without it. Between two steps anything may happen to the others, for any time:
 * that is what SIGSTOP does. `unless` lets a client die between any two of its steps; the kernel then frees its
 * guard and closes its FIFOs. Time is a counter that moves at any step. Nobody polls: a waiter sleeps until a
 * byte, the end of what it watches, or the end of the hold that it saw. A waiter that was missed shows as a
 * world in which nothing moves any more.
 *
 * Sizes: N clients with ROUNDS attempts each, of which the last PASSERS do not wait; RENEWS of each hold;
 * TICKS of the clock; KILLS; BREAKS; GIVEUP: waiters may leave. Each M_... breaks one rule; the check must
 * fail then. Each E_... changes something that makes no difference, and says why.
 */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef PASSERS
#define PASSERS 0
#endif
#ifndef RENEWS
#define RENEWS 0
#endif
#ifndef TICKS
#define TICKS 0
#endif
#ifndef KILLS
#define KILLS 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef GIVEUP
#define GIVEUP 0
#endif
#define TTL    2
#define CLAIM  1 /* how long a hand-over waits for its waiter */
#define NOBODY 0 /* clients are 1 .. N */
#define NONE   15 /* no ticket */

#define WAITED   1
#define RESERVED 2
#define BROKEN   4

/* Token, expiry, details (here: whose) and flags in one word. The high half is all but the token. */
#define W(t, e, who, f) ((t) | (e) << 4 | (who) << 8 | (f) << 11)
#define token(w) ((w) & 15)
#define expiry(w) ((w) >> 4 & 15)
#define holder(w) ((w) >> 8 & 7)
#define is(w, flag) (((w) >> 11 & (flag)) != 0)
#define is_free(w) ((w) >> 4 == 0)

/* Shared. */
short word;
byte guard;
byte head, tail; /* changed and read under the guard only */
byte now = 1;

/* Each client's. */
byte ticket[N + 1];
bool fifo[N + 1];  /* queue/HASH.TICKET is open; kept while the lock is held after a wait */
byte watch[N + 1]; /* whose FIFO it holds open */
bool watches_life[N + 1];
bool woke[N + 1];
bool dead[N + 2]; /* the breaker too */

/* Ghosts. */
bool holds[N + 1]; /* it was granted, and did not give it back */
byte until[N + 1]; /* what it believes                         */
byte highest;      /* of all tokens granted                    */
byte revoked;      /* the token of the hold that was broken    */
byte kills = KILLS;

/* The time is read before the word; where it stands still, that is one step. */
#if TICKS
#define LOOK n0 = now; w = word
#else
#define LOOK atomic { n0 = now; w = word }
#endif

#define valid(c) (holds[c] && until[c] > now)
#define waits(c, k) (fifo[c] && ticket[c] == (k))

#ifdef M_FAST_STORE
#define fast_fits(w) true
#else
#define fast_fits(w) (word == (w))
#endif
#if defined(M_TAKE_STORE)
#define take_fits(w) true
#elif defined(M_TAKE_TOKEN)
#define take_fits(w) (token(word) == token(w))
#else
#define take_fits(w) (word == (w))
#endif
#if defined(M_RENEW_STORE)
#define renew_fits(w) true
#elif defined(M_RENEW_TOKEN)
#define renew_fits(w) (token(word) == token(w))
#else
#define renew_fits(w) (word == (w))
#endif
#ifdef M_RELEASE_TOKEN
#define release_fits(w) (token(word) == token(w))
#else
#define release_fits(w) (word == (w))
#endif
#ifdef M_RENEW_DROPS
#define kept(w) ((w) >> 11 & ~WAITED)
#else
#define kept(w) ((w) >> 11)
#endif
#ifdef M_RENEW_BROKEN
#define may_be_broken(w) true
#else
#define may_be_broken(w) (!is(w, BROKEN))
#endif
#ifdef M_RENEW_EXPIRED
#define in_time(w, t) true
#else
#define in_time(w, t) (expiry(w) > (t))
#endif
#ifdef M_RELEASE_BLIND
#define goes_fast(w) true
#else
#define goes_fast(w) (!is(w, WAITED))
#endif
#ifdef M_BARGE
#define looks_free(w) (is_free(w) || is(w, RESERVED))
#else
#define looks_free(w) is_free(w)
#endif
#if defined(M_TAKER_CLEARS)
#define left_behind(k) 0
#elif defined(E_ALWAYS_WAITED)
#define left_behind(k) WAITED /* costs its release a guard, and finds nobody */
#else
#define left_behind(k) ((k) < tail -> WAITED : 0)
#endif
#if defined(M_SAME_TOKEN)
#define next_token(w) token(w)
#elif defined(M_EARLY_TOKEN)
#define next_token(w) early
#else
#define next_token(w) (token(w) + 1)
#endif

inline wake_watchers(c)
{
    for (i : 1 .. N) {
        if
        :: watch[i] == c -> watch[i] = NOBODY; watches_life[i] = false; woke[i] = true
        :: else
        fi
    }
    i = 0
}

/* The end of a waiter's FIFO; those who watch the client's life sleep on. */
inline drop_fifo(c)
{
    for (i : 1 .. N) {
        if
        :: watch[i] == c && !watches_life[i] -> watch[i] = NOBODY; woke[i] = true
        :: else
        fi
    }
    fifo[c] = false; ticket[c] = 0; i = 0
}

/* The first ticket from `from` on whose FIFO has a reader; else the tail. */
inline first_live(from)
{
    live = from;
    do
    :: live < tail ->
        alive = false;
        for (i : 1 .. N) {
            if
            :: waits(i, live) -> alive = true
            :: else
            fi
        }
        if
        :: alive -> break
        :: else -> live++
        fi
    :: else -> break
    od;
    i = 0; alive = false
}

inline wake(k)
{
#ifdef M_NO_WAKE
    skip
#else
    for (i : 1 .. N) {
        if
        :: waits(i, k) -> woke[i] = true
        :: else
        fi
    }
    i = 0
#endif
}

/* In the step that makes it true. w: what was replaced; k: the ticket, NONE for a newcomer. */
inline granted(w, k)
{
    assert(token(word) > highest);
    highest = token(word);
    for (i : 1 .. N) {
        assert(i == me || !valid(i)); /* one at a time */
        assert(i == me || k != NONE || watch[i] == NOBODY || woke[i]); /* nobody sleeps through it */
        assert(!(is(w, RESERVED) && expiry(w) > now && waits(i, head)) || i == me); /* it was promised */
        assert(k == NONE || !(fifo[i] && !holds[i] && ticket[i] >= head + lapsed && ticket[i] < k)); /* in order */
    }
    i = 0;
    holds[me] = true;
    until[me] = n0 + TTL;
    mine = token(word);
    early = 0
}

/* Passes the lock on from w, under the guard. got: it is done. */
inline hand_over(from)
{
    d_step { first_live(from); head = live };
#ifndef M_WAKE_LATE
    d_step { wake(live) }; /* whoever wakes up waits for the guard, and may find nothing changed */
#endif
    d_step {
        got = release_fits(w);
        if
        :: got && live < tail -> word = W(token(w), n0 + CLAIM, NOBODY, RESERVED | WAITED)
        :: got && live == tail -> word = W(token(w), 0, NOBODY, 0)
        :: else
        fi;
        if
        :: got -> w = word
        :: else
        fi
    };
#ifdef M_WAKE_LATE
    if
    :: got && live < tail -> d_step { wake(live) }
    :: else
    fi;
#endif
    live = 0
}

/* Under the guard: takes the lock (got), hands it to whose turn it is, or finds it held. w is what the word
 * is then. */
inline take(k)
{
    busy = false;
    do
    :: got || busy -> break
    :: else ->
        LOOK;
        d_step {
            early = (early == 0 -> token(w) + 1 : early);
            if
            :: !is_free(w) && !is(w, RESERVED) && expiry(w) > n0 && !dead[holder(w)] -> busy = true
            :: else ->
                lapsed = is(w, RESERVED) && expiry(w) <= n0;
                if
                :: head != tail && k != head -> first_live(head + lapsed)
                :: else -> live = k
                fi
            fi
        };
        if
        :: busy
        :: !busy && live != k && live < tail -> /* another's turn */
            if
            :: lapsed || !is(w, RESERVED) || live != head ->
                hand_over(live); busy = got; got = false
            :: else -> busy = true
            fi
        :: else ->
            d_step {
                live = (k != NONE && live == k -> k + 1 : tail); /* those passed over draw again */
                got = take_fits(w);
                if
                :: got ->
                    word = W(next_token(w), n0 + TTL, me, left_behind(live));
                    granted(w, k)
                :: else
                fi
            };
            if
            :: got -> head = live
            :: else
            fi
        fi;
        live = 0; lapsed = false
    od
}

/* Under the guard, with a ticket and a hold seen: *waited* into that hold, and something to watch. busy:
 * may sleep. */
inline prepare_to_sleep()
{
#ifdef M_WAITER_SILENT
    skip;
#else
    d_step {
#ifdef M_WAITER_BLIND
        word = word | (WAITED << 11); w = w | (WAITED << 11)
#else
        busy = word == w;
        if
        :: busy -> word = word | (WAITED << 11); w = word
        :: else
        fi
#endif
    };
#endif
    d_step {
        watch[me] = NOBODY;
        for (i : 1 .. N) { /* the live ticket next before ours */
            if
            :: busy && fifo[i] && ticket[i] >= head && ticket[i] < ticket[me] &&
               (watch[me] == NOBODY || ticket[i] > ticket[watch[me]]) -> watch[me] = i
            :: else
            fi
        }
        i = 0;
        if
        :: busy && watch[me] == NOBODY && !is(w, RESERVED) && !dead[holder(w)] ->
            watch[me] = holder(w); watches_life[me] = true
        :: else
        fi;
#ifndef M_SLEEP
        busy = busy && watch[me] != NOBODY; /* else look again at once */
#endif
    }
}

inline lock() { atomic { guard == NOBODY -> guard = me } }
inline unlock() { guard = NOBODY }

inline draw_ticket()
{
    d_step { drop_fifo(me); ticket[me] = tail; fifo[me] = true; woke[me] = false };
    tail++
}

/* Waits in the queue until it is ours, or we give up. */
inline wait()
{
    do
    :: got -> break
    :: else ->
        lock();
        d_step {
            if
            :: fifo[me] && ticket[me] < head -> drop_fifo(me) /* passed over */
            :: else
            fi
        };
        do
        :: true ->
            if
            :: fifo[me] -> take(ticket[me])
            :: else -> take(NONE)
            fi;
            if
            :: got -> break
            :: !got && !(fifo[me] && ticket[me] >= head) -> draw_ticket()
            :: else ->
                prepare_to_sleep();
                if
                :: busy -> break
                :: else
                fi
            fi
        od;
        atomic { busy = false; unlock() };
        if
        :: got
        :: else ->
            n0 = (watches_life[me] -> expiry(w) : 0);
            w = 0;
            if
            :: woke[me]
            :: n0 != 0 && now >= n0
            :: GIVEUP -> leave(); break
            fi;
            d_step { woke[me] = false; watch[me] = NOBODY; watches_life[me] = false; n0 = 0 }
        fi
    od
}

inline leave()
{
    d_step { watch[me] = NOBODY; watches_life[me] = false };
    lock();
    live = ticket[me];
    d_step { drop_fifo(me) };
    do
    :: true ->
        LOOK;
        if
        :: is(w, RESERVED) && head == live -> hand_over(live + 1); live = head
        :: else -> break
        fi;
        if
        :: got -> break
        :: else
        fi
    od;
    atomic { got = false; busy = false; live = 0; woke[me] = false; unlock() }
}

inline renew()
{
    do
    :: true ->
        LOOK;
        if
        :: token(w) == mine && !is_free(w) && !is(w, RESERVED) && may_be_broken(w) && in_time(w, n0) ->
            d_step {
                got = renew_fits(w);
                if
                :: got ->
                    assert(mine != revoked);
                    assert(until[me] > n0); /* what is over does not come back */
                    word = W(token(w), n0 + TTL, me, kept(w));
                    until[me] = n0 + TTL
                :: else
                fi
            };
            if
            :: got -> break
            :: else
            fi
        :: else -> break
        fi
    od;
    got = false
}

inline release()
{
    d_step { holds[me] = false; until[me] = 0 };
    do
    :: true ->
        w = word;
        if
        :: token(w) != mine || is_free(w) || is(w, RESERVED) -> break
        :: else ->
            if
            :: goes_fast(w) ->
                d_step {
                    got = release_fits(w);
                    if
                    :: got -> word = W(mine, 0, NOBODY, 0)
                    :: else
                    fi
                }
            :: else ->
                lock();
                LOOK;
                if
                :: token(w) == mine && !is_free(w) && !is(w, RESERVED) -> hand_over(head)
                :: else -> got = true
                fi;
                unlock()
            fi;
            if
            :: got -> break
            :: else
            fi
        fi
    od;
    atomic { got = false; w = 0; n0 = 0; drop_fifo(me) }
}

proctype client(byte me)
{
    short w;
    byte round, renews, n0, mine, live, early, i;
    bool got, busy, lapsed, alive;

    {
        do
        :: round < ROUNDS ->
            round++;
            LOOK;
            early = token(w) + 1;
            if
            :: looks_free(w) ->
                d_step {
                    got = fast_fits(w);
                    if
                    :: got -> word = W(token(w) + 1, n0 + TTL, me, 0); granted(w, NONE)
                    :: else
                    fi
                }
            :: else
            fi;
            if
            :: got
            :: !got && me <= N - PASSERS -> wait()
            :: else -> lock(); take(NONE); atomic { busy = false; unlock() }
            fi;
            if
            :: got ->
                d_step { got = false; w = 0; n0 = 0 };
                renews = 0;
                do
                :: renews < RENEWS -> renews++; renew()
                :: true -> break
                od;
                release();
                mine = 0; renews = 0
            :: else
            fi;
            d_step { w = 0; n0 = 0; early = 0 }
        :: else -> break
        od
    } unless { dead[me] };
    atomic { w = 0; round = 0; renews = 0; n0 = 0; mine = 0; live = 0; early = 0; i = 0;
             got = false; busy = false; lapsed = false; alive = false }
}

#if BREAKS
/* Revokes one hold, whichever it meets; or, with BREAKS 2, ends it at once. */
proctype breaker(byte me)
{
    short w;
    byte live, n0, i;
    bool got, alive;

    {
        atomic { guard == NOBODY -> guard = me };
        do
        :: true ->
            LOOK;
            if
            :: is_free(w) || is(w, RESERVED) || is(w, BROKEN) -> break
            :: else
            fi;
            if
            :: BREAKS == 1 ->
                d_step {
                    got = word == w;
                    if
                    :: got -> word = word | (BROKEN << 11); revoked = token(w)
                    :: else
                    fi
                }
            :: else ->
                d_step {
                    if
                    :: word == w -> holds[holder(w)] = false /* it was told to nobody */
                    :: else
                    fi
                };
                hand_over(head)
            fi;
            if
            :: got -> break
            :: else
            fi
        od;
        guard = NOBODY
    } unless { dead[me] };
    atomic { w = 0; n0 = 0; live = 0; i = 0; got = false; alive = false }
}
#endif

proctype world()
{
    byte i, c;

end:
    do
    :: d_step { now < 1 + TICKS -> now++ }
#if KILLS
    :: atomic {
           kills > 0 -> kills--;
           if
           :: c = 1
           :: c = 2
#if N > 2
           :: c = 3
#endif
#if BREAKS
           :: c = N + 1
#endif
           fi;
           d_step {
               dead[c] = true;
               guard = (guard == c -> NOBODY : guard);
               if
               :: c > N -> c = 0
               :: else ->
                   fifo[c] = false; ticket[c] = 0; holds[c] = false; until[c] = 0;
                   watch[c] = NOBODY; watches_life[c] = false; woke[c] = false;
                   wake_watchers(c); c = 0
               fi
           }
       }
#endif
    od
}

init {
    atomic {
        run client(1); run client(2);
#if N > 2
        run client(3);
#endif
#if BREAKS
        run breaker(N + 1);
#endif
        run world()
    }
}
