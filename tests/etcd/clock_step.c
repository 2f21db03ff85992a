/* clock_step.c - preloaded into a server written in Go, moves its wall clock by the seconds that
 * the file named by $CLOCK_STEP_FILE holds, at any time. libfaketime cannot: Go reads the clock
 * through the kernel's vDSO and calls no function of libc. So the vDSO's clock_gettime is
 * overwritten with a jump to ours. x86-64 only. Built by the test. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *step; /* the file, mapped */

/* Runs on whatever stack Go gives it: no library, no errno. */
static long raw(long number, long a, long b)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b)
                     : "rcx", "r11", "memory");
    return result;
}

__attribute__((no_stack_protector)) static long our_clock(long clock, struct timespec *out)
{
    long result = raw(SYS_clock_gettime, clock, (long)out);

    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        out->tv_sec += *step;
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

__attribute__((constructor)) static void patch(void)
{
    const char *path = getenv("CLOCK_STEP_FILE");
    const char *base = (const char *)getauxval(AT_SYSINFO_EHDR);
    unsigned char jump[12] = {0x48, 0xb8, 0, 0, 0,    0,
                              0,    0,    0, 0, 0xff, 0xe0}; /* mov rax; jmp rax */
    void (*target)(void) = (void (*)(void))our_clock;
    uintptr_t page;
    void *at;
    int fd;

    if (path == NULL || base == NULL || (fd = open(path, O_RDONLY)) < 0)
        return;
    step = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, fd, 0);
    (void)close(fd);
    at = find(base, "__vdso_clock_gettime");
    if (step == MAP_FAILED || at == NULL)
        return;
    memcpy(jump + 2, &target, sizeof target);
    page = (uintptr_t)at & ~(uintptr_t)4095;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return;
    memcpy(at, jump, sizeof jump);
    (void)mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
}
