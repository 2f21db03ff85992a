/* faultsys.c - the system under the store, as a plan wants it. */
#include "client/client.h"
#include "faultkit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct kit_plan kit_plan;
struct kit_world kit_world;

static bool due(unsigned ops)
{
    if ((kit_plan.ops & ops) == 0)
        return false;
    kit_plan.seen++;
    return kit_plan.seen == kit_plan.at || (kit_plan.lasting && kit_plan.seen > kit_plan.at);
}

/* What happens before the call. True: the call is not made and fails. */
static bool before(bool now)
{
    if (!now)
        return false;
    if (kit_plan.action == KIT_KILL_BEFORE)
        (void)raise(SIGKILL);
    if (kit_plan.action == KIT_STOP_BEFORE)
        (void)raise(SIGSTOP);
    if (kit_plan.action == KIT_FAIL)
        errno = kit_plan.error;
    return kit_plan.action == KIT_FAIL;
}

/* What happens after it. True: it has its effect and fails all the same. */
static bool after(bool now)
{
    if (!now)
        return false;
    if (kit_plan.action == KIT_KILL_AFTER)
        (void)raise(SIGKILL);
    if (kit_plan.action == KIT_STOP_AFTER)
        (void)raise(SIGSTOP);
    if (kit_plan.action == KIT_FAIL_AFTER)
        errno = kit_plan.error;
    return kit_plan.action == KIT_FAIL_AFTER;
}

static ssize_t fault_pread(int fd, void *buf, size_t len, off_t at)
{
    bool now = due(KIT_PREAD);
    ssize_t got;

    if (before(now))
        return -1;
    got = pread(fd, buf, len, at);
    if (now && kit_plan.action == KIT_TORN && got > 0)
        memset((char *)buf + got / 2, 0x5a, (size_t)(got - got / 2));
    return after(now) ? -1 : got;
}

static ssize_t fault_pwrite(int fd, const void *buf, size_t len, off_t at)
{
    bool now = due(len > SLOT_SIZE ? KIT_PWRITE | KIT_PAGES : KIT_PWRITE);
    bool half = now && (kit_plan.action == KIT_SHORT || kit_plan.action == KIT_TORN);
    ssize_t done;

    if (before(now))
        return -1;
    done = pwrite(fd, buf, half ? len / 2 : len, at);
    if (now && kit_plan.action == KIT_TORN)
        (void)raise(SIGKILL);
    return after(now) ? -1 : done;
}

static int fault_openat(int dir, const char *name, int flags, mode_t mode)
{
    bool now = due(KIT_OPENAT);
    int fd;

    if (before(now))
        return -1;
    fd = openat(dir, name, flags, mode);
    if (after(now)) {
        if (fd >= 0)
            (void)close(fd);
        errno = kit_plan.error;
        return -1;
    }
    return fd;
}

static int fault_fsync(int fd)
{
    bool now = due(KIT_FSYNC);
    int result;

    if (before(now))
        return -1;
    result = kit_world.no_fsync ? 0 : fsync(fd);
    return after(now) ? -1 : result;
}

static int fault_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    bool now = due(KIT_RENAME);
    int result;

    if (before(now))
        return -1;
    result = renameat(from_dir, from, to_dir, to);
    return after(now) ? -1 : result;
}

static int fault_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    bool now = due(KIT_RENAME);
    int result;

    if (before(now))
        return -1;
    result = linkat(from_dir, from, to_dir, to, flags);
    return after(now) ? -1 : result;
}

static bool fault_boot_id(char out[37])
{
    if (kit_world.boot_id == NULL)
        return hf__file_sys_real.boot_id(out);
    memcpy(out, kit_world.boot_id, 37);
    return true;
}

static uint64_t fault_time_namespace(void)
{
    return kit_world.time_namespace != 0 ? kit_world.time_namespace
                                         : hf__file_sys_real.time_namespace();
}

const struct hf__file_sys kit_sys = {
    .pread = fault_pread,
    .pwrite = fault_pwrite,
    .openat = fault_openat,
    .fsync = fault_fsync,
    .renameat = fault_renameat,
    .linkat = fault_linkat,
    .boot_id = fault_boot_id,
    .time_namespace = fault_time_namespace,
};

const struct hf__file_sys kit_mapped_sys = {
    .pread = fault_pread,
    .pwrite = fault_pwrite,
    .openat = fault_openat,
    .fsync = fault_fsync,
    .renameat = fault_renameat,
    .linkat = fault_linkat,
    .boot_id = fault_boot_id,
    .time_namespace = fault_time_namespace,
    .maps = true,
};

static int64_t fault_now_ns(void)
{
    return kit_world.now_fake ? kit_world.now_ns : hf__now_ns();
}

static int64_t fault_wall_us(void)
{
    return kit_world.wall_fake ? kit_world.wall_us : hf__wall_us();
}

static void fault_vlog(const char *format, va_list args)
{
    (void)format;
    (void)args;
}

static void fault_log(const char *format, ...)
{
    (void)format;
}

const struct hf_host kit_host = {.size = sizeof kit_host,
                                 .now_ns = fault_now_ns,
                                 .wall_us = fault_wall_us,
                                 .random = hf__random,
                                 .log = fault_log,
                                 .vlog = fault_vlog};
