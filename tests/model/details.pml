/* details.pml - who holds a lock of the embedded store: the details that a word names, those who read them,
 * and the page of a dead client that another one gets.
 *
 * Two locks, PAGES client pages with the details of one hold each (number 1, 2, ...), and number 0 in each
 * slot, for a client that has no number left. Steps, death and the kernel are as in word.pml. A client that gives up on
 * a release, because it did not get the guard in time, leaves a hold that expires.
 *
 * Sizes: N clients with ROUNDS attempts each, READS of `list`, KILLS. Each M_... breaks one rule; the check must
 * fail then.
 */
#ifndef N
#define N 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef PAGES
#define PAGES 1
#endif
#ifndef READS
#define READS 1
#endif
#ifndef KILLS
#define KILLS 0
#endif
#define NOBODY 0 /* clients are 1 .. N */

/* Token, number of the details and flags in one word. The high half is all but the token. */
#define HELD   64
#define MOVING 128
#define W(t, n) ((t) | (n) << 4 | HELD)
#define token(w) ((w) & 15)
#define number(w) ((w) >> 4 & 3)
#define is_held(w) (((w) & HELD) != 0)
#define is_moving(w) (((w) & MOVING) != 0)
#define is_free(w) ((w) >> 4 == 0)

/* Shared. Details 0 and 1 are those in the slots. */
#define at(x, n) ((n) == 0 -> (x) : 1 + (n))
byte word[2];
byte guard[2];
byte clients_guard;
byte page_client[PAGES + 1]; /* by number, from 1 */
byte d_token[2 + PAGES]; /* 0 while they are written */
byte d_lock[2 + PAGES];
byte d_client[2 + PAGES];

/* Ghosts. */
bool dead[N + 1];
byte owner_of[2];
bool expired[2];
byte kills = KILLS;

inline lock(x) { atomic { guard[x] == NOBODY -> guard[x] = me } }

inline write_details(x, n, t)
{
    d_token[at(x, n)] = 0;
    d_step { d_lock[at(x, n)] = x; d_client[at(x, n)] = me };
    d_token[at(x, n)] = t
}

/* Under the clients' guard: nothing names the details of this page any more. They say which lock it was. */
inline bury(p)
{
#ifndef M_BURY_NOT
    if
    :: d_token[1 + p] != 0 ->
        h = d_lock[1 + p];
        lock(h);
        do
        :: w = word[h];
           if
           :: is_held(w) && number(w) == p ->
               d_step {
                   same = word[h] == w;
                   if
                   :: same -> word[h] = token(w); expired[h] = false; owner_of[h] = NOBODY
                   :: else
                   fi
               };
               if
               :: same -> break
               :: else
               fi
           :: else -> break
           fi
        od;
        guard[h] = NOBODY;
        w = 0; h = 0; same = false
    :: else
    fi
#else
    skip
#endif
}

/* A page that is nobody's, or a dead client's. */
inline get_page()
{
    atomic { clients_guard == NOBODY -> clients_guard = me };
    if
    :: page_client[1] == NOBODY -> page = 1
    :: PAGES > 1 && page_client[PAGES] == NOBODY -> page = PAGES
    :: page_client[1] != NOBODY && dead[page_client[1]] -> page = 1
    :: PAGES > 1 && page_client[PAGES] != NOBODY && dead[page_client[PAGES]] -> page = PAGES
    :: else
    fi;
    if
    :: page != 0 ->
#ifdef M_BURY_LATE
        page_client[page] = me; bury(page)
#else
        bury(page); page_client[page] = me
#endif
    :: else
    fi;
    clients_guard = NOBODY
}

/* Swaps w for our hold; details are complete before. */
inline swap_in(x)
{
#ifndef M_DETAILS_LATE
    write_details(x, n, token(w) + 1);
#endif
    d_step {
        got = word[x] == w;
        if
        :: got ->
            mine = token(w) + 1;
            word[x] = W(mine, n);
            owner_of[x] = me;
            expired[x] = false
        :: else
        fi
    };
#ifdef M_DETAILS_LATE
    if
    :: got -> write_details(x, n, token(w) + 1)
    :: else
    fi
#endif
}

/* Is it held by a live client, as far as the details tell? */
inline check_life(x)
{
    d_step {
        same = (number(w) == 0 -> !dead[d_client[x]] : !dead[page_client[number(w)]]) && !expired[x];
        assert(!same || word[x] != w || !is_held(w) || d_token[at(x, number(w))] != token(w) ||
               !dead[owner_of[x]]) /* a dead one is seen to be dead */
    }
}

inline take_guarded(x)
{
    lock(x);
    d_step { word[x] = word[x] & ~MOVING }; /* mended */
    do
    :: w = word[x];
       if
       :: is_held(w) -> check_life(x)
       :: else -> same = false
       fi;
       if
       :: same -> break
       :: else
       fi;
       same = true;
#ifndef M_DETAILS_OVER
       if
       :: n == 0 && is_held(w) && number(w) == 0 -> /* nothing may name what is written next */
           d_step {
               same = word[x] == w;
               if
               :: same -> word[x] = token(w) | MOVING; w = word[x]; owner_of[x] = NOBODY; expired[x] = false
               :: else
               fi
           }
       :: else
       fi;
#endif
       if
       :: same -> swap_in(x)
       :: else
       fi;
       if
       :: got -> break
       :: else
       fi
    od;
    same = false; w = 0;
    guard[x] = NOBODY
}

/* Until the swap has ended the hold, or it is seen to be another's, its number is in use. */
inline release(x)
{
#ifdef M_TOUCHED
    d_token[at(x, n)] = 0;
#endif
    do
    :: w = word[x];
       d_step {
           same = word[x] == w;
           if
           :: same && is_held(w) && token(w) == mine -> word[x] = mine; owner_of[x] = NOBODY
           :: else
           fi
       };
       if
       :: same -> break
       :: else
       fi
    od;
    used = used && n == 0
}

/* Our number may have come out of use: others ended its hold. */
inline reclaim()
{
    lock(last);
    w = word[last];
    used = is_held(w) && number(w) == page;
    guard[last] = NOBODY;
    w = 0
}

proctype client(byte me)
{
    byte w, round, page, n, x, h, last, mine;
    bool got, same, used;

    {
        get_page();
        do
        :: round < ROUNDS ->
            round++;
            if
            :: x = 0
            :: me + round > 2 -> x = 1 /* the very first may be called 0 */
            fi;
            if
            :: used -> reclaim()
            :: else
            fi;
            n = (used -> 0 : page);
            w = word[x];
            if
            :: n != 0 && is_free(w) -> swap_in(x)
            :: else
            fi;
            if
            :: !got -> take_guarded(x)
            :: else
            fi;
            if
            :: got ->
                if
                :: n != 0 -> used = true; last = x
                :: else
                fi;
                if
                :: release(x)
                :: expired[x] = true; /* gives up: the word may go on naming it */
#ifdef M_REUSED
                   used = false
#endif
                fi
            :: else
            fi;
            atomic { got = false; same = false; w = 0; n = 0; x = 0; mine = 0;
                     last = (used -> last : 0) }
        :: else -> break
        od
    } unless { dead[me] };
    atomic { w = 0; round = 0; page = 0; n = 0; x = 0; h = 0; last = 0; mine = 0;
             got = false; same = false; used = false }
}

/* `list`: no guard, and nothing but reading. */
proctype reader()
{
    byte w, reads, x, t, who;

    do
    :: reads < READS ->
        reads++;
        if
        :: x = 0
        :: x = 1
        fi;
        w = word[x];
        if
        :: is_held(w) ->
            t = d_token[at(x, number(w))];
            who = d_client[at(x, number(w))];
            d_step {
#ifndef M_ONE_LOOK
                if
                :: word[x] == w -> assert(t == token(w) && who == owner_of[x])
                :: else
                fi
#else
                assert(t == token(w) && who == owner_of[x])
#endif
            }
        :: else
        fi;
        atomic { w = 0; x = 0; t = 0; who = 0 }
    :: else -> break
    od
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
#if N > 1
           :: c = 2
#endif
#if N > 2
           :: c = 3
#endif
           fi;
           d_step {
               dead[c] = true;
               guard[0] = (guard[0] == c -> NOBODY : guard[0]);
               guard[1] = (guard[1] == c -> NOBODY : guard[1]);
               clients_guard = (clients_guard == c -> NOBODY : clients_guard);
               c = 0
           }
       }
    od
}
#endif

init {
    atomic {
        run client(1);
#if N > 1
        run client(2);
#endif
#if N > 2
        run client(3);
#endif
        run reader();
#if KILLS
        run world()
#endif
    }
}
