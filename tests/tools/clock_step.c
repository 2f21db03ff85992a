/* clock_step.c - preloaded into a server, moves its wall clock by the seconds that the file named
 * by $CLOCK_STEP_FILE holds (decimal text, changed in place), at any time.
 *
 * libfaketime does the same, but cannot start a program that links jemalloc, which asks for the
 * time inside the first malloc, and does not reach a program written in Go, which calls no function
 * of libc but the kernel's vDSO. So the functions of libc are replaced, and on x86-64 the vDSO's
 * clock_gettime is overwritten with a jump to ours. Built by the test, because the server it goes
 * into is not built with our sanitizers. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FILE_SIZE 16

static const volatile char *file; /* mapped; NULL before there is one */

/* Runs on whatever stack Go gives it, and before malloc is safe: no library. */
static long step_seconds(void)
{
    long seconds = 0;
    size_t at = 0;
    long sign = 1;

    if (file == NULL)
        return 0;
    if (file[0] == '-') {
        sign = -1;
        at = 1;
    }
    for (; at < FILE_SIZE && file[at] >= '0' && file[at] <= '9'; at++)
        seconds = 10 * seconds + (file[at] - '0');
    return sign * seconds;
}

static void add_step(clockid_t clock, struct timespec *out)
{
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        out->tv_sec += step_seconds();
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);

    if (result == 0)
        add_step(clock, out);
    return result;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}

#ifdef __x86_64__
/* The same without errno, which Go's threads have none of. */
__attribute__((no_stack_protector)) static long vdso_clock(long clock, struct timespec *out)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"((long)SYS_clock_gettime), "D"(clock), "S"(out)
                     : "rcx", "r11", "memory");
    if (result == 0)
        add_step((clockid_t)clock, out);
    return result;
}

static void *find(const char *base, const char *name)
{
    const Elf64_Ehdr *elf = (const void *)base;
    const Elf64_Phdr *part = (const void *)(base + elf->e_phoff);
    const Elf64_Dyn *dyn = NULL;
    const Elf64_Sym *symbols = NULL;
    const char *names = NULL;
    const uint32_t *hash = NULL;
    const char *load = base;

    for (int i = 0; i < elf->e_phnum; i++) {
        if (part[i].p_type == PT_LOAD)
            load = base - part[i].p_vaddr + part[i].p_offset;
        if (part[i].p_type == PT_DYNAMIC)
            dyn = (const void *)(base + part[i].p_offset);
    }
    for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++) {
        if (dyn->d_tag == DT_SYMTAB)
            symbols = (const void *)(load + dyn->d_un.d_ptr);
        if (dyn->d_tag == DT_STRTAB)
            names = load + dyn->d_un.d_ptr;
        if (dyn->d_tag == DT_HASH)
            hash = (const void *)(load + dyn->d_un.d_ptr);
    }
    for (uint32_t i = 0; hash != NULL && i < hash[1]; i++)
        if (strcmp(names + symbols[i].st_name, name) == 0)
            return (void *)(load + symbols[i].st_value);
    return NULL;
}

static void patch_vdso(void)
{
    const char *base = (const char *)getauxval(AT_SYSINFO_EHDR);
    void *at = base != NULL ? find(base, "__vdso_clock_gettime") : NULL;
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0,    0,
                              0,    0,    0, 0, 0xff, 0xe0}; /* mov rax; jmp rax */
    void (*target)(void) = (void (*)(void))vdso_clock;
    uintptr_t page = (uintptr_t)at & ~(uintptr_t)4095;

    memcpy(jump + 2, &target, sizeof target);
    if (at == NULL || mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return;
    memcpy(at, jump, sizeof jump);
    (void)mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
}
#else
static void patch_vdso(void)
{
}
#endif

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CLOCK_STEP_FILE");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map;

    if (fd < 0)
        return;
    map = mmap(NULL, FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    if (map == MAP_FAILED)
        return;
    file = map;
    patch_vdso();
}
