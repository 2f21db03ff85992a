/* doctor.h - `holdfast doctor`: which kind of lock a live setup is fit for. */
#ifndef HF_CLI_DOCTOR_DOCTOR_H
#define HF_CLI_DOCTOR_DOCTOR_H

#include "cli/audit/audit.h"

/* What the lock is to be for: as asked for, or as the answers to the questions say. */
enum doctor_for { DOCTOR_EFFICIENCY, DOCTOR_CORRECTNESS, DOCTOR_NOT_SAID };

/* What the questions on a terminal end in: questions.c */
enum doctor_advice {
    DOCTOR_NO_ADVICE,   /* they were not asked */
    DOCTOR_LOCK,        /* a plain lock */
    DOCTOR_IDEMPOTENCY, /* no lock: the same again changes nothing */
    DOCTOR_FENCE,       /* a lock and a fence */
    DOCTOR_ONE_WRITER   /* no lock: it cannot be made right by one */
};

/* One examination. */
struct doctor {
    int purpose; /* enum doctor_for */
    bool json;
    struct audit_fences fences;
    int64_t ttl_ms;
    int64_t grace_ms;
    bool ttl_given;
    bool grace_given;
    const char *url;        /* of the store; NULL: the default */
    struct cli_shown shown; /* it, without its password */
    enum doctor_advice advice;
    struct audit_facts facts;
    struct audit_findings findings;
    struct hf_error failed; /* code HF_OK, or why not everything was looked at */
};

/* What the examination was for in the end. */
static inline enum hf__purpose doctor_purpose(const struct doctor *doctor)
{
    if (doctor->purpose != DOCTOR_NOT_SAID)
        return doctor->purpose == DOCTOR_CORRECTNESS ? HF__FOR_CORRECTNESS : HF__FOR_EFFICIENCY;
    return doctor->fences.named.count > 0 ? HF__FOR_CORRECTNESS : HF__FOR_EFFICIENCY;
}

/* Asks the three questions, and sets purpose and advice. False: whoever was asked left. */
bool doctor_ask(struct doctor *doctor);
/* The command line that the answers lead to. */
void doctor_tell_advice(const struct doctor *doctor);
/* What was found, for people: tell.c; as one JSON object: json.c */
void doctor_tell(const struct doctor *doctor);
void doctor_json(const struct doctor *doctor);

#endif /* HF_CLI_DOCTOR_DOCTOR_H */
