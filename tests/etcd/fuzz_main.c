/* fuzz_main.c - drives a fuzz target without a fuzzer: every line of the corpus on stdin, changed
 * in random ways, for a number of rounds.  fuzz SEED ROUNDS < CORPUS */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MAX 64
#define LINE_SIZE 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t dice;

static size_t roll(size_t below)
{
    dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
    return (size_t)(dice >> 33) % below;
}

static size_t change(char *text, size_t len)
{
    static const char *const pieces[] = {"\"",   "{",  "}",       "[",    "]",
                                         "null", "-1", "\\u0000", "true", "9223372036854775808",
                                         "=",    ",",  "\n",      "%00",  "\x1f"};
    size_t at = len > 0 ? roll(len) : 0;

    switch (roll(4)) {
    case 0:
        if (len > 0)
            text[at] = (char)roll(256);
        return len;
    case 1: { /* a piece out */
        size_t count = len > 0 ? roll(len - at) : 0;

        memmove(text + at, text + at + count, len - at - count);
        return len - count;
    }
    case 2: { /* a piece in */
        const char *piece = pieces[roll(sizeof pieces / sizeof *pieces)];
        size_t count = strlen(piece);

        if (len + count >= LINE_SIZE)
            return len;
        memmove(text + at + count, text + at, len - at);
        memcpy(text + at, piece, count);
        return len + count;
    }
    default: /* a stretch doubled */
        if (2 * len - at < LINE_SIZE) {
            memmove(text + len, text + at, len - at);
            return 2 * len - at;
        }
        return len;
    }
}

int main(int argc, char **argv)
{
    static char lines[LINES_MAX][LINE_SIZE];
    static char text[2 * LINE_SIZE];
    size_t count = 0;
    long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 1000;

    dice = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    while (count < LINES_MAX && fgets(lines[count], LINE_SIZE / 2, stdin) != NULL)
        count++;
    for (long i = 0; i < rounds && count > 0; i++) {
        const char *seed = lines[roll(count)];
        size_t len = strlen(seed);

        memcpy(text, seed, len);
        for (size_t changes = roll(6); changes > 0; changes--)
            len = change(text, len);
        (void)LLVMFuzzerTestOneInput((const uint8_t *)text, len);
    }
    (void)printf("%ld rounds\n", rounds);
    return count > 0 ? 0 : 1;
}
