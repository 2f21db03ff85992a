/* redlock.pml - tokens over a quorum of nodes: unique and in order, whatever the network does.
 *
 * One process picks any event that may happen next: a node executes a request, a client decides on
 * the answers that reached it, gives up or ends, a key expires, a node loses its memory. A message
 * that is never picked is lost, one that is picked late was delayed or overtaken, and GRANT may be
 * executed DUPS times more than it was sent. Nothing here knows time: a key may expire at any step.
 * What timing buys is kept as a ghost (`gone`, `past`): a client whose counted key is gone is past
 * its deadline, and knows it.
 *
 * The rules are those of src/core/quorum.c and of the nodes' scripts. Sizes: K attempts, 3 nodes,
 * DUPS, AMNESIA (how often a node forgets), RENEW (attempts renew), GUESS. Each M_... breaks one rule; the
 * check must fail then.
 */
#ifndef K
#define K 2
#endif
#ifndef DUPS
#define DUPS 0
#endif
#ifndef AMNESIA
#define AMNESIA 0
#endif
#ifndef RENEW
#define RENEW 0
#endif
#ifndef GUESS
#define GUESS 3 /* clients' clocks say 1 .. GUESS */
#endif
#define N 3
#define W 1 /* how far a guess may be from a node's clock, to be applied */

#define IDLE  0
#define GRANT 1
#define RAISE 2
#define HELD  3
#define OVER  4

#define bit(n) (1 << (n))
#define in(set, n) (((set) >> (n)) & 1)

/* The nodes. */
byte key[N]; /* owner, 0: free */
byte ctr[N];
byte clk[N];
byte life[N]; /* incarnation */
bool quarantine[N];
byte forgot[N];

/* The attempts. Sets of nodes are bits. What no event can look at any more is set to 0, so that
 * states which do not differ in anything that matters are one. */
byte phase[K];
byte guess[K];
byte token[K];
byte asked[K];    /* GRANT is on its way                                     */
byte granted[K];  /* it was executed; the answer may be taken                */
byte applied[K];  /* and the guess was applied                               */
byte told[K * N]; /* the highest of what that answer tells: counter, clock, guess if applied */
byte sent[K];     /* RAISE is on its way   */
byte raised[K];   /* RAISE was executed    */
byte met[K * N];  /* the incarnation the client speaks to */
byte renewed[K];

/* Ghosts. */
byte gone[K];   /* where the key ceased to be since the request was sent */
byte before[K]; /* attempts that had returned before this one was called */
byte counted[K];
bool won[K];
bool valid[K]; /* it won, and no counted key was gone by then                       */
bool past[K];  /* a counted key has expired since: the deadline is over             */
bool lost[K];  /* too few keys are left, and too few grants that could still make one */
byte dups = DUPS;
byte lapses = AMNESIA;

byte i, mine; /* 0 between events */

#ifdef M_OWNER_REUSED
/* All attempts but the last are one client's, which keeps its owner. */
#define owner(a) ((a) == K - 1 -> K : 1)
#define may_start(a) ((a) == 0 || (a) == K - 1 || phase[(a) - 1] == OVER)
#else
#define owner(a) ((a) + 1)
#define may_start(a) ((a) == 0 || phase[((a) + K - 1) % K] != IDLE)
#endif
#ifdef M_REACHABLE
#define Q 1 /* one node answered, and that is a majority of one */
#else
#define Q 2
#endif
#ifdef M_TWO_NAMES
#define weight(a, n) ((a) == 0 && (n) == 0 -> 2 : 1) /* the first client lists node 0 twice */
#else
#define weight(a, n) 1
#endif
#define votes(a, set) (in(set, 0) * weight(a, 0) + in(set, 1) * weight(a, 1) + \
                       in(set, 2) * weight(a, 2))
#ifdef M_NOT_APPLIED
#define fast(a) granted[a]
#else
#define fast(a) (granted[a] & applied[a])
#endif
#ifdef M_VOTES_AT_ONCE
#define awake(n) true
#else
#define awake(n) (!quarantine[n])
#endif
#ifdef M_CLOCK_IGNORED
#define near(a, n) true
#define clock_of(n) 0
#else
#define near(a, n) (guess[a] <= clk[n] + W && guess[a] + W >= clk[n])
#define clock_of(n) clk[n]
#endif
#ifdef M_RAISE_UNCHECKED
#define may_raise(a, n) true
#else
#define may_raise(a, n) (ctr[n] < token[a])
#endif
#ifdef M_RECREATE
#define may_renew(a, n) (key[n] == owner(a) || key[n] == 0)
#else
#define may_renew(a, n) (key[n] == owner(a))
#endif
#define open_to(a, n) (life[n] == met[(a) * N + n] && awake(n))

inline clear_answers(a)
{
    told[a * N] = 0; told[a * N + 1] = 0; told[a * N + 2] = 0;
    applied[a] = 0
}

/* Whoever counts on this key knows by its clock that the time is up. */
inline expire(n)
{
    for (i : 0 .. K - 1) {
        if
        :: key[n] == owner(i) && (phase[i] == GRANT || phase[i] == RAISE) ->
            gone[i] = gone[i] | bit(n)
        :: key[n] == owner(i) && phase[i] == HELD ->
            past[i] = past[i] || in(counted[i], n);
            gone[i] = (RENEW -> gone[i] | bit(n) : 0)
        :: else
        fi
    }
    key[n] = 0;
    look_for_loss()
}

inline look_for_loss()
{
    for (i : 0 .. K - 1) {
        if
        :: RENEW && phase[i] == HELD ->
            mine = (key[0] == owner(i) || in(asked[i], 0)) + (key[1] == owner(i) || in(asked[i], 1)) +
                   (key[2] == owner(i) || in(asked[i], 2));
            if
            :: mine < Q && !lost[i] -> lost[i] = true; renewed[i] = 0 /* those were in time */
            :: else
            fi
        :: else
        fi
    }
    mine = 0; i = 0
}

inline start(a, g)
{
    phase[a] = GRANT;
    guess[a] = g;
    asked[a] = 7;
    for (i : 0 .. N - 1) { met[a * N + i] = life[i] }
    for (i : 0 .. K - 1) {
        if
        :: won[i] -> before[a] = before[a] | bit(i)
        :: else
        fi
    }
    i = 0
}

inline highest(a, n, value) { told[a * N + n] = (value > told[a * N + n] -> value : told[a * N + n]) }

inline execute_grant(a, n)
{
    key[n] = owner(a);
    asked[a] = asked[a] & ~bit(n);
    if
    :: phase[a] == GRANT || phase[a] == RAISE ->
        granted[a] = granted[a] | bit(n);
        told[a * N + n] = (phase[a] == GRANT -> ctr[n] : 0);
        if
        :: phase[a] == GRANT -> highest(a, n, clock_of(n))
        :: else
        fi
    :: else
    fi;
    if
    :: guess[a] > ctr[n] && near(a, n) ->
        ctr[n] = guess[a];
        if
        :: phase[a] == GRANT -> applied[a] = applied[a] | bit(n); highest(a, n, guess[a])
        :: else
        fi
    :: else
    fi
}

/* Once more, where the answer of the first execution is the one that is taken. */
inline execute_again(a, n)
{
    key[n] = owner(a);
    if
    :: guess[a] > ctr[n] && near(a, n) -> ctr[n] = guess[a]
    :: else
    fi
}

/* The answers of `set` are in the client's hands, the others are late. */
inline choose_token(a, set)
{
    token[a] = 0;
    for (i : 0 .. N - 1) {
        if
        :: in(set, i) && told[a * N + i] > token[a] -> token[a] = told[a * N + i]
        :: else
        fi
    }
    token[a]++;
    sent[a] = set;
    granted[a] = granted[a] & ~(set);
    phase[a] = RAISE;
    clear_answers(a);
    i = 0
}

inline done(a, set, t)
{
    token[a] = t;
    phase[a] = HELD;
    won[a] = true;
    counted[a] = set;
    valid[a] = (gone[a] & counted[a]) == 0;
    for (i : 0 .. K - 1) {
        if
        :: i != a && won[i] ->
            assert(token[i] != t);                     /* unique                   */
            assert(!in(before[a], i) || token[i] < t); /* in the order of real time */
            if
            :: valid[a] && valid[i] ->
                assert(phase[i] != OVER || token[i] < t);  /* in the order of holding  */
                assert(phase[i] != HELD || past[i])        /* one at a time            */
            :: else
            fi
        :: else
        fi
    }
    clear_answers(a);
    granted[a] = 0; raised[a] = 0; gone[a] = 0; before[a] = 0; i = 0
}

inline over(a)
{
    phase[a] = OVER;
    clear_answers(a);
    granted[a] = 0; raised[a] = 0; gone[a] = 0; before[a] = 0; counted[a] = 0; renewed[a] = 0;
    past[a] = false; lost[a] = false;
    if
    :: !won[a] && sent[a] == 0 -> token[a] = 0
    :: else
    fi
}

inline confirm(a)
{
    assert(!lost[a]); /* what was lost is not found again */
    past[a] = past[a] || (gone[a] & renewed[a]) != 0;
    counted[a] = renewed[a];
    renewed[a] = 0
}

#ifdef M_LATE_GRANT
#define LATE(a, n) \
    :: d_step { phase[a] == RAISE && in(granted[a], n) -> \
                granted[a] = granted[a] & ~bit(n); sent[a] = sent[a] | bit(n) }
#else
#define LATE(a, n)
#endif
#ifdef M_RESENT
/* No answer came, so it is sent again, and the deadline counts from then on; but it is the first
 * answer that arrives. */
#define RESEND(a, n) \
    :: d_step { phase[a] == GRANT && in(granted[a], n) && key[n] == 0 && in(gone[a], n) && \
                open_to(a, n) -> execute_again(a, n); gone[a] = gone[a] & ~bit(n) }
#else
#define RESEND(a, n)
#endif

/* Every event of one attempt at one node. */
#define AT(a, n) \
    LATE(a, n) RESEND(a, n) \
    :: d_step { in(asked[a], n) && key[n] == 0 && open_to(a, n) -> execute_grant(a, n) } \
    :: d_step { dups > 0 && phase[a] != IDLE && !in(asked[a], n) && key[n] == 0 && \
                open_to(a, n) -> dups--; execute_again(a, n) } \
    :: d_step { dups > 0 && phase[a] == GRANT && in(granted[a], n) && key[n] == 0 && \
                open_to(a, n) -> dups--; applied[a] = applied[a] & ~bit(n); execute_grant(a, n) } \
    :: d_step { in(sent[a], n) && key[n] == owner(a) && open_to(a, n) && may_raise(a, n) -> \
                ctr[n] = token[a]; sent[a] = sent[a] & ~bit(n); \
                if \
                :: phase[a] == RAISE -> raised[a] = raised[a] | bit(n) \
                :: else \
                fi } \
    :: d_step { phase[a] == OVER && key[n] == owner(a) -> key[n] = 0; look_for_loss() } \
    :: d_step { RENEW && phase[a] == HELD && !in(renewed[a], n) && may_renew(a, n) && \
                life[n] == met[a * N + n] -> \
                key[n] = owner(a); renewed[a] = renewed[a] | bit(n); gone[a] = gone[a] & ~bit(n) }

#define DECIDE(a, set) \
    :: d_step { phase[a] == GRANT && (fast(a) & (set)) == (set) && votes(a, set) >= Q -> \
                done(a, set, guess[a]) } \
    :: d_step { phase[a] == GRANT && (granted[a] & (set)) == (set) && votes(a, set) >= Q -> \
                choose_token(a, set) } \
    :: d_step { phase[a] == RAISE && (raised[a] & (set)) == (set) && votes(a, set) >= Q -> \
                done(a, set, token[a]) }

#define ATTEMPT(a) \
    :: d_step { phase[a] == IDLE && may_start(a) -> start(a, 1) } \
    :: d_step { GUESS > 1 && phase[a] == IDLE && may_start(a) -> start(a, 2) } \
    :: d_step { GUESS > 2 && phase[a] == IDLE && may_start(a) -> start(a, 3) } \
    DECIDE(a, 3) DECIDE(a, 5) DECIDE(a, 6) DECIDE_ONE(a) \
    :: d_step { phase[a] == GRANT && granted[a] == 7 -> choose_token(a, 7) } \
    :: d_step { phase[a] == GRANT || phase[a] == RAISE || phase[a] == HELD -> over(a) } \
    :: d_step { RENEW && votes(a, renewed[a]) >= Q -> confirm(a) } \
    AT(a, 0) AT(a, 1) AT(a, 2)
#if defined(M_REACHABLE) || defined(M_TWO_NAMES)
#define DECIDE_ONE(a) DECIDE(a, 1) DECIDE(a, 2) DECIDE(a, 4)
#else
#define DECIDE_ONE(a)
#endif

/* Quarantine outlasts every lease; and clocks that are apart by little put a node's clock, less the
 * window of guesses, above what it forgot. */
#define NODE(n) \
    :: d_step { key[n] != 0 -> expire(n) } \
    :: d_step { lapses > 0 && !quarantine[n] -> \
                lapses--; forgot[n] = ctr[n]; ctr[n] = 0; quarantine[n] = true; life[n]++; \
                key[n] = 0; look_for_loss() } \
    :: d_step { quarantine[n] -> \
                quarantine[n] = false; \
                clk[n] = (forgot[n] + 1 + W > clk[n] -> forgot[n] + 1 + W : clk[n]); \
                forgot[n] = 0; \
                for (i : 0 .. K - 1) { \
                    if \
                    :: phase[i] != IDLE && met[i * N + n] != life[n] && \
                       (phase[i] == GRANT || phase[i] == RAISE) -> gone[i] = gone[i] | bit(n) \
                    :: phase[i] == HELD && met[i * N + n] != life[n] -> \
                        past[i] = past[i] || in(counted[i], n); \
                        gone[i] = (RENEW -> gone[i] | bit(n) : 0) \
                    :: else \
                    fi \
                } \
                i = 0 }

init {
    d_step { clk[0] = 1; clk[1] = 2; clk[2] = 1 };
end:
    do
    ATTEMPT(0)
    ATTEMPT(1)
#if K > 2
    ATTEMPT(2)
#endif
    NODE(0) NODE(1) NODE(2)
    od
}
