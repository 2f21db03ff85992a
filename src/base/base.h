/* base.h - the small things everything else is made of: errors, time, random numbers, text.
 * Depends on libc only and on no other part of holdfast. */
#ifndef HF_BASE_BASE_H
#define HF_BASE_BASE_H

#ifndef __linux__
#error "holdfast runs on Linux only: it rests on OFD locks, signalfd, timerfd and subreapers"
#endif

#include "base/url.h"

#include <holdfast.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/types.h>

#define HF__NS_PER_MS 1000000LL
#define HF__NS_PER_S  1000000000LL

/* errors: error.c */

/* Fills *err (if not NULL) and returns code, so that `return hf__fail(err, HF_BUSY, ...)` reads
 * well. The text is cut at HF_ERROR_TEXT_SIZE. retry_after_ms becomes 0. */
enum hf_status hf__fail(struct hf_error *err, enum hf_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
enum hf_status hf__vfail(struct hf_error *err, enum hf_status code, const char *format,
                         va_list args) __attribute__((format(printf, 3, 0)));
/* The same about a lock: `lock "NAME" in store SHOWN`, and right behind it what the format says, so
 * it begins with ": " or with " is held by ...". Without a lock (NULL or "") it is `store SHOWN`;
 * without a store, which may be gone, `lock "NAME"`. shown is the store's URL without its password.
 * What the format says is never cut to make room for long names and URLs: those are. */
enum hf_status hf__fail_lock(struct hf_error *err, enum hf_status code, const char *lock,
                             const char *shown, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* HF_INVALID: the ttl is above what the store grants. */
enum hf_status hf__fail_max_ttl(struct hf_error *err, const char *lock, const char *shown,
                                int64_t ttl_ms, int64_t max_ttl_ms);
/* HF_LOST: it was broken, and by whom (NULL: that is not known). */
enum hf_status hf__fail_broken(struct hf_error *err, const char *lock, const char *shown,
                               const struct hf_revocation *revocation);
/* Why the hold that a break means is not the present one. */
enum hf__not_broken {
    HF__NOT_HELD,
    HF__NOT_HELD_ANY_MORE,    /* it was when we looked */
    HF__NOT_HELD_BY_MAJORITY, /* of a Redlock's nodes */
    HF__HANDED_OVER,
    HF__HELD_BY_FOREIGN,
    HF__HELD_WITH_OTHER_TOKEN
};
/* HF_LOST: nothing was broken, and why. token: of the hold that was meant; 0: a foreign one. */
enum hf_status hf__fail_not_broken(struct hf_error *err, const char *lock, const char *shown,
                                   uint64_t token, enum hf__not_broken why);
/* HF_STALE: what was to be written is not newer than the record that is there. */
enum hf_status hf__fail_old_record(struct hf_error *err, const char *lock, const char *shown,
                                   const char *key);
/* Out of memory. */
enum hf_status hf__nomem(struct hf_error *err);
/* Clears *err (if not NULL) and returns HF_OK. */
enum hf_status hf__ok(struct hf_error *err);

/* time: time.c */

int64_t hf__now_ns(void);  /* CLOCK_BOOTTIME */
int64_t hf__wall_us(void); /* CLOCK_REALTIME; for tokens and display only */
/* a + b, held at INT64_MAX instead of overflowing; b >= 0. */
int64_t hf__time_add(int64_t a, int64_t b);
/* A length of time, INT64_MAX if it is too long: whatever a user may have asked for. */
int64_t hf__ms_to_ns(int64_t ms);
/* poll() until deadline_ns of CLOCK_BOOTTIME (HF_NEVER: no limit), restarted after a signal.
 * Returns what poll returns; errno is never EINTR. A deadline in the past polls once. */
int hf__poll_until(struct pollfd *fds, nfds_t count, int64_t deadline_ns);
void hf__sleep_ns(int64_t ns);

/* processes: spawn.c */

/* Never returns. */
typedef void hf__child_fn(void *data);

/* Starts a child in a cgroup, which calls fn. A copy of us, as after fork(2), but we
 * wait until it is executed or ends, as after vfork(2). -1 with errno, EACCES for instance. */
pid_t hf__spawn_into_cgroup(int cgroup_fd, hf__child_fn *fn, void *data);

/* random numbers: random.c */

/* From getrandom(2), waiting for the pool at boot. Aborts where the system has no getrandom. */
void hf__random(void *buf, size_t len);

/* forks: fork.c */

/* Tells a forked child from the process that made the mark. May be copied. */
struct hf__fork_mark {
    const volatile int *page; /* wiped in a child; NULL: the kernel cannot do that */
    int pid;
};
void hf__fork_mark_init(struct hf__fork_mark *mark);
/* Ends the mark and all its copies. */
void hf__fork_mark_release(struct hf__fork_mark *mark);
bool hf__forked(const struct hf__fork_mark *mark);

/* text: text.c */

/* Writes 2 * len lower-case hex digits and a NUL. */
void hf__hex_encode(char *out, const void *data, size_t len);
/* The reverse; false unless text is exactly 2 * len hex digits. */
bool hf__hex_decode(void *out, size_t len, const char *text);
/* 1..most bytes, none of them a control character or DEL. */
bool hf__text_valid(const char *text, size_t most);
/* A lock name: that with HF_NAME_MAX. */
bool hf__name_valid(const char *name);
/* The bytes of the UTF-8 character at text, and its number; 0 if there is none. */
size_t hf__utf8_read(const char *text, unsigned long *point);
/* Whether all of it is UTF-8. */
bool hf__utf8_valid(const char *text);
/* False for what steers a terminal or turns the order of a text around: the control characters,
 * those above ASCII too, and the marks of direction. */
bool hf__is_printable(unsigned long point);
/* Copies text, cut at size - 1 bytes on a UTF-8 boundary. What is not printable or not UTF-8
 * becomes '?', so that names and labels, which are any bytes, can be shown. */
void hf__copy_printable(char *out, size_t size, const char *text);
/* "250ms", "30s", "5m", "2h", "1d", "1h30m"; a bare number is seconds; fractions ("1.5s") are
 * allowed. False if it is none of these, is negative, or does not fit. */
bool hf__parse_duration_ms(const char *text, int64_t *out_ms);
/* "1h02m", "3m20s", "3m", "4.2s", "250ms": for people. Returns out. */
char *hf__format_duration(char *out, size_t size, int64_t ms);
/* Decimal digits only, no sign, no overflow. */
bool hf__parse_u64(const char *text, uint64_t *out);
/* 64-bit hash, well mixed, of len bytes; for tables and checksums, not for secrets. */
uint64_t hf__hash64(const void *data, size_t len, uint64_t seed);
/* How many single-character edits (swap of neighbours included) separate a from b; for "did you
 * mean". */
size_t hf__edit_distance(const char *a, const char *b);

/* Passwords: password.c */

/* The first line of the file, if one is named, else what the environment's variable says, else "".
 * shown is the store's URL for the error's text. HF_OK; HF_INVALID: no such file, empty or too
 * long; HF_DENIED. */
enum hf_status hf__find_password(const char *file, const char *variable, const char *shown,
                                 char *out, size_t size, struct hf_error *err);

#endif /* HF_BASE_BASE_H */
