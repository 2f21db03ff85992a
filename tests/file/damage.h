/* damage.h - a store that is damaged, and what is expected of it then.
 *
 * Damage is refused with the sentence that names the way out; the way out works, and tokens go on
 * above all that was seen before. The wall clock stands at 1, so that it cannot help. */
#ifndef HF_TESTS_DAMAGE_H
#define HF_TESTS_DAMAGE_H

#include "../support/faultkit.h"

#define NAMES 150 /* enough to fill buckets and split them */

struct sample {
    const char *dir;
    uint64_t last[NAMES];
    uint64_t highest;
    off_t size;
};

/* The name of the i-th lock. */
void name_of(char *out, size_t size, int i);

/* A store that has grown, with held and idle locks; of this boot, or of the one named. */
struct sample make_sample(void);
struct sample make_sample_of(const char *boot_id);
/* The same again in `to`, and nothing else. */
void fresh_copy(const char *from, const char *to);
/* Flips bits of one byte of a file. */
void flip(const char *path, off_t at, unsigned char bits);

/* False: HF_OK or HF_BUSY. Else it must be a refusal that says how to go on. */
bool refused(enum hf_status status, const struct hf_error *err);
/* Uses every lock and lists them. Returns true if any of it was refused. */
bool use_all(const char *dir);
void repair(const char *dir, uint64_t above);
/* Every lock can be had, or is held still; no token went back. */
void usable(const char *dir, const struct sample *sample);

#endif /* HF_TESTS_DAMAGE_H */
