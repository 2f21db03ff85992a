/* slot.pml - slots of the embedded store: given to another name, moved by a split, marked, mended; and those
 * who look at them without the guard, or with a pointer from before.
 *
 * The smallest world in which all of it happens: a page of SLOTS slots and the one that is split off it, and
 * three names, of which B moves. Steps, death and the kernel are as in word.pml. Nothing expires here: a hold
 * ends by its release, or by the death of its client. So a live client that is told "lost" was told a lie.
 *
 * Sizes: N clients with ROUNDS attempts each, at any name; or, of the first FIXED, at B, and of the others at
 * C; RENEWS of each hold; KILLS. Each M_... breaks one rule; the check must fail then. E_... makes no
 * difference, and says why.
 */
#ifndef N
#define N 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef RENEWS
#define RENEWS 1
#endif
#ifndef KILLS
#define KILLS 0
#endif
#define NOBODY 0 /* clients are 1 .. N */
#define NONE   7 /* no slot */
#define A 1
#define B 2 /* goes to the other page when the first one is split */
#define C 3

/* Token, whose, how often renewed and *moving*, in one word. The high half is all but the token. */
#define MOVING (1 << 10)
#define W(t, who, n) ((t) | (who) << 5 | (n) << 8)
#define token(w) ((w) & 31)
#define holder(w) ((w) >> 5 & 7)
#define renewals(w) ((w) >> 8 & 3)
#define is_moving(w) (((w) & MOVING) != 0)
#define is_free(w) ((w) >> 5 == 0)

/* Shared. Page 0 has the slots 0 .. SLOTS - 1, page 1 those that follow. */
short word[2 * SLOTS];
byte name[2 * SLOTS]; /* 0: its hash is 0 */
byte floor_of[2];
byte guard[2];
bool depth; /* page 0 was split */

/* Ghosts. */
bool dead[N + 1];
byte holds[N + 1];   /* the name       */
byte renewed[N + 1]; /* how often      */
byte highest[4];     /* token of each name */
byte kills = KILLS;

#define page_of(x) (depth && (x) == B -> 1 : 0)
#define slot_page(s) ((s) / SLOTS)

#ifdef M_NO_MARK
#define GIVEN 0
#else
#define GIVEN MOVING
#endif
#ifdef M_TAKE_MOVING
#define looks_free(w) is_free((w) & ~MOVING)
#else
#define looks_free(w) is_free(w)
#endif
#ifdef M_RENEW_MOVING
#define may_renew(w) true
#else
#define may_renew(w) (!is_moving(w))
#endif
#ifdef M_RELEASE_MOVING
#define may_release(w) true
#else
#define may_release(w) (!is_moving(w))
#endif
#ifdef M_MEND_MOVED
#define routed_here(x) true
#else
#define routed_here(x) (page_of(x) == page)
#endif

/* In the step that makes it true. */
inline granted(x)
{
    assert(token(word[s]) > highest[x]);
    for (i : 1 .. N) {
        assert(holds[i] != x)
    }
    i = 0;
    highest[x] = token(word[s]);
    mine = token(word[s]);
    holds[me] = x;
    renewed[me] = 0
}

/* What the word says about a live client is true. */
inline look(s)
{
    d_step {
        w = word[s];
        assert(is_moving(w) || is_free(w) || dead[holder(w)] ||
               (holds[holder(w)] == name[s] && renewals(w) == renewed[holder(w)]))
    }
}

/* Locks the page of a name, and mends it. */
inline lock(x)
{
    do
    :: true ->
        page = page_of(x);
        atomic { guard[page] == NOBODY -> guard[page] = me };
        if
        :: page == page_of(x) -> break
        :: else -> guard[page] = NOBODY
        fi
    od;
#ifndef M_NO_MEND
    s = page * SLOTS;
    do
    :: s < (page + 1) * SLOTS ->
        if
        :: is_moving(word[s]) && name[s] != 0 && routed_here(name[s]) -> word[s] = word[s] & ~MOVING
        :: else
        fi;
        s++
    :: else -> break
    od
#endif
}

inline unlock() { guard[page] = NOBODY }

/* The slot of a name in the locked page, which no other changes; NONE. */
inline find(x)
{
    d_step {
        s = NONE;
        for (i : 0 .. SLOTS - 1) {
            if
            :: name[page * SLOTS + i] == x -> s = page * SLOTS + i
            :: else
            fi
        }
        i = 0
    }
}

/* One that was given to nobody, has moved, or is idle; NONE. */
inline find_vacant()
{
    d_step {
        s = NONE;
        for (i : 0 .. SLOTS - 1) {
            w = word[page * SLOTS + i];
            if
            :: s == NONE && (name[page * SLOTS + i] == 0 || page_of(name[page * SLOTS + i]) != page ||
                             is_free(w) || dead[holder(w)]) -> s = page * SLOTS + i
            :: else
            fi
        }
        i = 0;
        w = 0
    }
}

inline raise_floor()
{
    floor_of[page] = (token(w) > floor_of[page] -> token(w) : floor_of[page])
}

/* Gives slot s to a name. s is NONE afterwards if it was taken meanwhile. */
inline give(x)
{
    w = word[s];
    if
    :: name[s] != 0 && page_of(name[s]) == page && !is_free(w) && !dead[holder(w)] -> s = NONE
    :: else ->
#if !defined(M_NO_FLOOR) && !defined(M_FLOOR_LATE)
        raise_floor();
#endif
#ifdef M_RENAME_FIRST
        name[s] = x;
#endif
        d_step {
            if
            :: word[s] == w ->
#ifdef M_SAME_TOKEN
                word[s] = token(w) | GIVEN
#else
                word[s] = ((floor_of[page] > token(w) -> floor_of[page] : token(w)) + 1) | GIVEN
#endif
            :: else -> s = NONE
            fi
        };
        if
        :: s != NONE ->
            name[s] = 0;
            name[s] = x;
#ifdef M_FLOOR_LATE
            raise_floor();
#endif
#ifdef E_STORE_MOVING
            w = word[s]; word[s] = w & ~MOVING /* nobody else changes what moves */
#else
            d_step { word[s] = word[s] & ~MOVING }
#endif
        :: else
        fi
    fi;
    w = 0
}

inline copy_to(t)
{
    word[t] = word[s] & ~MOVING;
    name[t] = name[s]
}

/* Splits page 0, which is locked: B moves. The new page is written where nobody looks yet. */
inline split()
{
    d_step {
        for (i : SLOTS .. 2 * SLOTS - 1) { word[i] = 0; name[i] = 0 }
        i = 0;
#ifndef M_FLOOR_STAYS
        floor_of[1] = floor_of[0]
#endif
    };
    find(B);
#ifdef M_DEPTH_FIRST
    depth = true;
#endif
    if
    :: s != NONE ->
#ifdef M_COPY_FIRST
        d_step { copy_to(SLOTS) };
        d_step { word[s] = word[s] | MOVING }
#else
#ifndef M_SPLIT_NO_MARK
        d_step { word[s] = word[s] | MOVING };
#endif
        d_step { copy_to(SLOTS) }
#endif
    :: else
    fi;
    depth = true
}

/* Takes a lock under the guard, if it is there for the taking. mine: it is ours. The slot is s. */
inline take_found(x)
{
    do
    :: true ->
        look(s);
        assert(!is_moving(w)); /* mended */
        if
        :: !is_free(w) && !dead[holder(w)] -> break
        :: else
        fi;
        d_step {
            if
            :: word[s] == w -> word[s] = W(token(w) + 1, me, 0); granted(x)
            :: else
            fi
        };
        if
        :: mine != 0 -> break
        :: else
        fi
    od;
    w = 0
}

inline take(x)
{
    do
    :: true ->
        lock(x);
        find(x);
        if
        :: s == NONE ->
            find_vacant();
            if
            :: s != NONE -> give(x)
            :: else
            fi
        :: else
        fi;
        if
        :: s != NONE -> take_found(x); unlock(); break
        :: s == NONE && page == 0 && !depth -> split(); unlock()
        :: else -> unlock(); break /* no room */
        fi
    od
}

inline take_fast(x)
{
    s = page_of(x) * SLOTS; /* a hint is as old as this may become */
    if
    :: SLOTS > 1 -> s = s + 1
    :: true
    fi;
#ifdef M_NAME_FIRST
    same = name[s] == x;
    w = word[s];
#else
    w = word[s];
    same = name[s] == x;
#endif
#ifdef M_NAME_NEVER
    same = true;
#endif
    if
    :: looks_free(w) && same ->
        d_step {
            if
            :: word[s] == w -> word[s] = W(token(w) + 1, me, 0); granted(x)
            :: else
            fi
        }
    :: else
    fi;
    w = 0; same = false
}

/* By the pointer s. */
inline renew(x)
{
    w = word[s];
    do
    :: token(w) == mine && may_renew(w) ->
        d_step {
            same = word[s] == w;
            if
            :: same -> word[s] = word[s] + W(0, 0, 1); renewed[me]++
            :: else
            fi
        };
        if
        :: same -> break
        :: else -> w = word[s]
        fi
    :: else ->
#ifdef M_RENEW_TRUSTS
        assert(token(w) == mine); /* "lost" */
#endif
        lock(x);
        find(x);
        assert(s != NONE); /* "lost" */
        look(s);
        assert(token(w) == mine);
        unlock()
    od;
    w = 0; same = false
}

inline release(x)
{
    w = word[s];
    do
    :: token(w) == mine && may_release(w) ->
        d_step {
            same = word[s] == w;
            if
            :: same -> word[s] = mine; holds[me] = 0; renewed[me] = 0
            :: else
            fi
        };
        if
        :: same -> break
        :: else -> w = word[s]
        fi
    :: else ->
#ifdef M_RELEASE_TRUSTS
        assert(token(w) == mine);
#endif
        lock(x);
        find(x);
        assert(s != NONE);
        look(s);
        assert(token(w) == mine);
        unlock()
    od;
    w = 0; same = false; mine = 0
}

inline choose()
{
#ifdef FIXED
    want = (me <= FIXED -> B : C)
#else
    if
    :: want = A
    :: want = B
    :: want = C
    fi
#endif
}

proctype client(byte me)
{
    short w;
    byte round, renews, want, mine, s, page, i;
    bool same;

    {
        do
        :: round < ROUNDS ->
            round++;
            choose();
            take_fast(want);
            if
            :: mine == 0 -> take(want)
            :: else
            fi;
            page = 0;
            if
            :: mine != 0 ->
                do
                :: renews < RENEWS -> renews++; renew(want)
                :: true -> break
                od;
                release(want)
            :: else
            fi;
            want = 0; s = 0; page = 0; renews = 0
        :: else -> break
        od
    } unless { dead[me] };
    atomic { w = 0; round = 0; renews = 0; want = 0; mine = 0; s = 0; page = 0; i = 0; same = false }
}

#if KILLS
proctype world()
{
    byte c;

end:
    do
    :: atomic {
           kills > 0 -> kills--;
           if
           :: c = 1
           :: c = 2
#if N > 2
           :: c = 3
#endif
           fi;
           d_step {
               dead[c] = true; holds[c] = 0; renewed[c] = 0;
               guard[0] = (guard[0] == c -> NOBODY : guard[0]);
               guard[1] = (guard[1] == c -> NOBODY : guard[1]);
               c = 0
           }
       }
    od
}
#endif

init {
    atomic {
        run client(1); run client(2);
#if N > 2
        run client(3);
#endif
#if KILLS
        run world()
#endif
    }
}
