/* crash.h - scenes of a store's life, in which a child is killed at a chosen call.
 *
 * The wall clock stands still at 1, so that the order of tokens can come from nothing but what the
 * store keeps. */
#ifndef HF_TESTS_CRASH_H
#define HF_TESTS_CRASH_H

#include "../support/faultkit.h"

#define CROWD 8 /* names of one bucket: one more than it has slots */

/* What a child that may die at any moment leaves behind. */
struct notes {
    volatile uint64_t token;  /* the last one it was given */
    volatile bool go;         /* the parent has set the scene */
    volatile bool ready;      /* the child has set its part of it */
    volatile uint64_t waiter; /* the token of the one in line */
    volatile bool waiter_done;
};

struct scene {
    const char *dir;
    struct notes *notes;
    char names[CROWD][24]; /* all in the same bucket */
    struct kit_plan plan;
    struct kit_hold held[CROWD];
    uint64_t last[CROWD];
    struct hf_store_base *base;
    pid_t child;
};

struct scenario {
    const char *name;
    bool fresh;                             /* the store is not there yet */
    void (*prepare)(struct scene *scene);   /* in the parent, before the child starts */
    void (*act)(struct scene *scene);       /* in the child; arms the plan itself */
    void (*meanwhile)(struct scene *scene); /* in the parent, while the child runs */
    void (*check)(struct scene *scene);     /* in the parent, after the child's end */
};

/* In the order of the table; those that a test names. */
enum { SCENARIO_CREATE = 0, SCENARIO_SPLIT = 7, SCENARIOS = 12 };
extern const struct scenario scenarios[SCENARIOS];

/* Runs a scene in which a child is killed at a call, or a step. False: it makes fewer than that. */
bool crash_run(const struct scenario *scenario, unsigned ops, enum kit_action action, long at);

/* Parts of scenes. In the child: */
void scene_arm(struct scene *scene);
struct hf_store_base *scene_open(struct scene *scene);
void scene_must(enum hf_status status, const struct hf_error *err);
void scene_acquire(struct scene *scene);
/* Before: the parent holds the first lock; the bucket is full of held locks. */
void scene_hold_first(struct scene *scene);
void scene_fill(struct scene *scene);
/* After: the lock can be had well before any ttl, and its token is above `last`. */
void scene_takeable(struct scene *scene, const char *name, uint64_t last);
void scene_check_first(struct scene *scene);
void scene_check_crowd(struct scene *scene);
/* Names for the scene that hash to the first bucket. */
void choose_names(struct scene *scene);

#endif /* HF_TESTS_CRASH_H */
