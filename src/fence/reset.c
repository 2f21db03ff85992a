/* reset.c - starting a file's fence again, with a reason that is kept. */
#include "fence/fence.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_LEN = 1024 };

/* Who did it, by number: asking for the name may load modules and wait for a directory service. */
static void log_line(char out[LINE_MAX_LEN], const struct hf__fence_record *old, bool readable,
                     const struct hf_fence_mark *mark, const char *reason)
{
    char when[32];
    char before[3 * HF_FENCE_ISSUER_MAX + 64];
    char text[HF_FENCE_REASON_MAX + 1];

    hf__fence_time(when, sizeof when, hf__wall_us());
    hf__copy_printable(text, sizeof text, reason);
    if (readable)
        (void)snprintf(before, sizeof before, "%" PRIu64 " of %s", old->mark.token,
                       old->mark.issuer[0] != '\0' ? old->mark.issuer : "an unnamed store");
    else
        (void)snprintf(before, sizeof before, "a damaged mark");
    (void)snprintf(out, LINE_MAX_LEN, "%s uid %lu reset %.250s to %" PRIu64 " of %s: %s\n", when,
                   (unsigned long)getuid(), before, mark->token,
                   mark->issuer[0] != '\0' ? mark->issuer : "the next store", text);
}

/* The line is on disk before the mark goes down: no reset without a trace. */
static enum hf_status write_log(struct hf__fence_file *file, const char *line, struct hf_error *err)
{
    const struct hf__fence_io *io = file->io;
    struct stat st;
    ssize_t rc = io->stat_fd(io, file->sidecar, &st);
    off_t at = HF__FENCE_LOG_AT;

    if (rc >= 0 && st.st_size > at)
        at = st.st_size;
    if (rc >= 0)
        rc = hf__fence_write_all(io, file->sidecar, line, strlen(line), at);
    if (rc >= 0)
        rc = io->sync(io, file->sidecar, true);
    return rc < 0 ? hf__fence_io_fail(err, rc, "record the reset of", file->path) : HF_OK;
}

enum hf_status hf__fence_reset(const struct hf__fence_io *io, const char *path, uint64_t token,
                               const char *issuer, const char *reason, struct hf_error *err)
{
    struct hf__fence_file file;
    struct hf__fence_record old;
    struct hf_fence_mark mark = {.token = token};
    char line[LINE_MAX_LEN];
    bool readable;
    enum hf_status status;

    if (reason == NULL || reason[0] == '\0')
        return hf__fail(err, HF_INVALID, "%s: a reset needs a reason", path);
    if (token > HF_FENCE_TOKEN_MAX)
        return hf__fail(err, HF_INVALID, "%" PRIu64 " is not a token: tokens are 1 to %" PRIu64,
                        token, HF_FENCE_TOKEN_MAX);
    hf__fence_issuer(mark.issuer, issuer);
    mark.admitted_us = token > 0 ? hf__wall_us() : 0;
    status = hf__fence_open(&file, io, path, err);
    if (status != HF_OK)
        return status;
    status = hf__fence_lock(&file, 0, err);
    if (status == HF_OK) {
        readable = hf__fence_load(&file, NULL) == HF_OK;
        if (readable && file.record.pending.len > 0)
            status = hf__fence_recover(&file, err);
        old = file.record;
        log_line(line, &old, readable, &mark, reason);
    }
    if (status == HF_OK)
        status = write_log(&file, line, err);
    /* Every slot: an old record that can still be read must not win later. */
    for (int i = 0; status == HF_OK && i < HF__FENCE_SLOTS; i++) {
        file.record.mark = mark;
        status = hf__fence_save(&file, true, err);
    }
    hf__fence_close(&file);
    return status == HF_OK ? hf__ok(err) : status;
}

enum hf_status hf_fence_reset(const char *path, uint64_t token, const char *issuer,
                              const char *reason, struct hf_error *err)
{
    return hf__fence_reset(&hf__fence_system_io, path, token, issuer, reason, err);
}
