/* view.h - a lock as it was seen: its word taken apart, its queue, who holds it. */
#ifndef HF_STORES_FILE_VIEW_H
#define HF_STORES_FILE_VIEW_H

#include "stores/file/layout.h"
#include <string.h>

struct view {
    off_t at;             /* of the slot in the file */
    struct hf__pair word; /* what a change expects to find */
    uint64_t floor;       /* of its page */
    uint64_t hash;
    uint64_t token;
    int64_t expires_ns;        /* CLOCK_BOOTTIME; 0: not held */
    int64_t reserved_until_ns; /* not held: reserved for the head until then; 0: it is not */
    uint64_t head;
    uint64_t tail;
    uint64_t broken;        /* the token of the hold that was broken last */
    struct details details; /* of the hold; all 0 if there is none */
    char name[HF_NAME_MAX + 8];
};

/* Does it (NULL: there is no such lock) tell of the hold of this owner with this token? */
static inline bool hf__view_is_hold(const struct view *view, const unsigned char *owner,
                                    uint64_t token)
{
    return view != NULL && view->token == token && view->details.token == token &&
           memcmp(owner, view->details.owner, sizeof view->details.owner) == 0;
}

#endif /* HF_STORES_FILE_VIEW_H */
