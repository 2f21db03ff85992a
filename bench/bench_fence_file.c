/* bench_fence_file.c DIR - what the fence adds to replacing a file durably: write, fsync, rename,
 * fsync of the directory. Under one token, as a holder writes; and with a new token each time. */
#include "compare.h"

#include <fcntl.h>
#include <holdfast/fence.h>
#include <unistd.h>

enum { ROUNDS = 200, BATCH = 1, SIZE = 4096 };

struct files {
    char plain[512], temp[512], fenced[512], raised[512];
    int dir;
    uint64_t token;
    char data[SIZE];
};

static void plain(void *data)
{
    struct files *f = data;
    int fd = open(f->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    if (fd < 0 || write(fd, f->data, SIZE) != SIZE || fsync(fd) != 0 || close(fd) != 0 ||
        rename(f->temp, f->plain) != 0 || fsync(f->dir) != 0) {
        perror("bench: plain write");
        exit(1);
    }
}

static void fenced(void *data)
{
    struct files *f = data;
    struct hf_fence_pass pass = {.size = sizeof pass, .token = 34, .issuer = "file:"};
    struct hf_error err;

    must(hf_fence_write(f->fenced, &pass, f->data, SIZE, &err), &err);
}

static void raised(void *data)
{
    struct files *f = data;
    struct hf_fence_pass pass = {.size = sizeof pass, .token = ++f->token, .issuer = "file:"};
    struct hf_error err;

    must(hf_fence_write(f->raised, &pass, f->data, SIZE, &err), &err);
}

int main(int argc, char **argv)
{
    static struct files f;

    if (argc != 2)
        return 64;
    f.dir = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(f.plain, sizeof f.plain, "%s/plain", argv[1]);
    (void)snprintf(f.temp, sizeof f.temp, "%s/plain.new", argv[1]);
    (void)snprintf(f.fenced, sizeof f.fenced, "%s/fenced", argv[1]);
    (void)snprintf(f.raised, sizeof f.raised, "%s/raised", argv[1]);
    compare_print("file write", &(struct comparison){plain, fenced, &f, ROUNDS, BATCH}, 1.2);
    compare_print("file write, a new token each time",
                  &(struct comparison){plain, raised, &f, ROUNDS, BATCH}, 0);
    return 0;
}
