/* spawn.c - clone3(2) on borrowed memory, which the C library has no function for. */
#include "base/base.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* vfork(2) returns twice on one stack; here the child has its own, so nothing of the parent's is
 * overwritten. Elsewhere, and where a sanitizer watches stacks, the memory is copied. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BORROWS 0
#elif defined(__x86_64__) || defined(__aarch64__)
#define BORROWS 1
#else
#define BORROWS 0
#endif

enum { CHILD_STACK = 64 * 1024 };

#if BORROWS && defined(__x86_64__)
static long clone_and_call(struct clone_args *args, hf__child_fn *fn, void *data)
{
    long result;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %[data], %%rdi\n\t"
                     "call *%[fn]\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "0"((long)SYS_clone3), "D"(args),
                       "S"(sizeof *args), [fn] "r"(fn), [data] "r"(data)
                     : "rcx", "r11", "memory", "cc");
    return result;
}
#elif BORROWS
static long clone_and_call(struct clone_args *args, hf__child_fn *fn, void *data)
{
    register long number __asm__("x8") = SYS_clone3;
    register long first __asm__("x0") = (long)args;
    register long second __asm__("x1") = (long)sizeof *args;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x0, %[data]\n\t"
                     "blr %[fn]\n\t"
                     "brk #1\n"
                     "1:"
                     : "+r"(first)
                     : "r"(number), "r"(second), [fn] "r"(fn), [data] "r"(data)
                     : "memory", "cc", "x30");
    return first;
}
#endif

pid_t hf__spawn_into_cgroup(int cgroup_fd, hf__child_fn *fn, void *data)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP | CLONE_VFORK,
                              .exit_signal = SIGCHLD,
                              .cgroup = (unsigned)cgroup_fd};
#if BORROWS
    _Alignas(16) char stack[CHILD_STACK];
    args.flags |= CLONE_VM;
    args.stack = (uintptr_t)stack;
    args.stack_size = sizeof stack;
    long pid = clone_and_call(&args, fn, data);
    if (pid >= 0)
        return (pid_t)pid;
    errno = (int)-pid;
    return -1;
#else
    long pid = syscall(SYS_clone3, &args, sizeof args);
    if (pid == 0)
        fn(data);
    return (pid_t)pid;
#endif
}
