/* svg.c - the trap as a picture: two stories, one above the other, four lanes each.
 *
 * The time axis shows the order of what happened, evenly spaced, with the measured times below: the
 * interesting steps are milliseconds apart and would lie on top of each other on a true scale. */
#include "cli/trap/trap.h"

#include "base/base.h"
#include "cli/say/svg.h"

#include <inttypes.h>

enum {
    WIDTH = 1000,
    HEAD = 84,   /* title of the picture */
    PANEL = 306, /* one story */
    FOOT = 30,
    LEFT = 132,    /* where the lanes start */
    RIGHT = 968,   /* where they end */
    LANE = 54,     /* from lane to lane */
    LANE_TOP = 66, /* of the first, in its panel */
    BAR = 26       /* height of a bar */
};

enum lane { LANE_WORKER_1, LANE_WORKER_2, LANE_LOCK, LANE_ACCOUNT, LANES };

/* Of the time axis. */
struct span {
    int from;
    int to;
};

struct panel {
    FILE *out;
    const struct trap_run *run;
    int top;
};

static void draw_panel(FILE *out, const struct trap_run *run, int top);

bool trap_draw(FILE *out, const struct trap_run runs[2], const char *store, int64_t ttl_ms)
{
    int height = HEAD + 2 * PANEL + FOOT;
    char ttl[32];
    char text[512];

    if (!cli_svg_begin(out, WIDTH, height,
                       "A worker that was frozen past its lease overwrites the account; with a "
                       "fence its write is refused"))
        return false;
    cli_svg_text(out, 32, 40, "title", "The lock is not the safety boundary, the resource is");
    (void)snprintf(text, sizeof text,
                   "holdfast trap, as it happened: two processes, one lock in %.200s with a ttl of "
                   "%s, one account with %d in it",
                   store, hf__format_duration(ttl, sizeof ttl, ttl_ms), TRAP_START);
    cli_svg_text(out, 32, 62, "sub", text);
    draw_panel(out, &runs[0], HEAD);
    draw_panel(out, &runs[1], HEAD + PANEL);
    cli_svg_text(out, 32, height - 16, "sub",
                 "Distances show the order of events; the times below them are measured.");
    return cli_svg_end(out);
}

/* ---- the alphabet ---- */

static int step_x(enum trap_step step)
{
    /* Room where there is something to write between two steps. */
    static const int at[TRAP_STEPS] = {
        [TRAP_TAKES_1] = 150,  [TRAP_READS_1] = 236, [TRAP_FREEZES] = 322,
        [TRAP_EXPIRES] = 430,  [TRAP_TAKES_2] = 486, [TRAP_READS_2] = 572,
        [TRAP_WRITES_2] = 656, [TRAP_THAWS] = 748,   [TRAP_WRITES_1] = 828};

    return at[step];
}

static int lane_y(const struct panel *panel, enum lane lane)
{
    return panel->top + LANE_TOP + (int)lane * LANE;
}

static void bar(const struct panel *panel, enum lane lane, struct span span, const char *class,
                int text_x, const char *text)
{
    int y = lane_y(panel, lane);

    fprintf(panel->out,
            "  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", class,
            span.from, y - BAR / 2, span.to - span.from, BAR);
    cli_svg_text(panel->out, text_x, y + 4, "note mid strong", text);
}

static void dot(const struct panel *panel, enum lane lane, enum trap_step step, const char *class,
                const char *text)
{
    int y = lane_y(panel, lane);

    fprintf(panel->out, "  <circle class=\"%s\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n", class,
            step_x(step), y);
    cli_svg_text(panel->out, step_x(step), y - 12, "note mid", text);
}

static void arrow(const struct panel *panel, int x, int from, int to, const char *class,
                  const char *marker)
{
    fprintf(panel->out, "  <path class=\"%s\" d=\"M%d %dV%d\" marker-end=\"url(#%s)\"/>\n", class,
            x, from, to, marker);
}

/* ---- the story ---- */

static void draw_frame(const struct panel *panel)
{
    static const char *const names[LANES] = {"worker 1", "worker 2", "lock", "account"};
    static const char *const classes[LANES] = {"name one", "name two", "name", "name"};
    static const enum trap_step timed[] = {TRAP_TAKES_1,  TRAP_FREEZES, TRAP_EXPIRES, TRAP_TAKES_2,
                                           TRAP_WRITES_2, TRAP_THAWS,   TRAP_WRITES_1};
    char text[32];

    cli_svg_text(panel->out, 32, panel->top + 24, panel->run->fenced ? "head good" : "head bad",
                 panel->run->fenced ? "With a fence" : "Without a fence");
    for (int lane = 0; lane < LANES; lane++) {
        int y = lane_y(panel, (enum lane)lane);

        fprintf(panel->out, "  <line class=\"lane\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n",
                LEFT, y, RIGHT, y);
        cli_svg_text(panel->out, 32, y + 5, classes[lane], names[lane]);
    }
    for (size_t i = 0; i < sizeof timed / sizeof timed[0]; i++) {
        int64_t ms = panel->run->at_ms[timed[i]];

        (void)snprintf(text, sizeof text, "%" PRId64 ".%03ds", ms / 1000, (int)(ms % 1000));
        cli_svg_text(panel->out, step_x(timed[i]), panel->top + PANEL - 28, "time", text);
    }
}

static void draw_workers(const struct panel *panel)
{
    const struct trap_run *run = panel->run;
    char text[64];

    dot(panel, LANE_WORKER_1, TRAP_TAKES_1, "one", "takes lock");
    (void)snprintf(text, sizeof text, "reads %ld", run->read_1);
    dot(panel, LANE_WORKER_1, TRAP_READS_1, "one", text);
    fprintf(panel->out, "  <path class=\"line1\" d=\"M%d %dH%d\"/>\n", step_x(TRAP_TAKES_1),
            lane_y(panel, LANE_WORKER_1), step_x(TRAP_FREEZES));
    fprintf(panel->out,
            "  <rect class=\"ice\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n",
            step_x(TRAP_FREEZES), lane_y(panel, LANE_WORKER_1) - BAR / 2,
            step_x(TRAP_THAWS) - step_x(TRAP_FREEZES), BAR);
    fprintf(panel->out,
            "  <rect class=\"halo\" x=\"%d\" y=\"%d\" width=\"236\" height=\"18\" rx=\"9\"/>\n",
            (step_x(TRAP_FREEZES) + step_x(TRAP_THAWS)) / 2 - 118,
            lane_y(panel, LANE_WORKER_1) - 9);
    cli_svg_text(panel->out, (step_x(TRAP_FREEZES) + step_x(TRAP_THAWS)) / 2,
                 lane_y(panel, LANE_WORKER_1) + 4, "note mid strong",
                 "frozen past its lease (SIGSTOP)");
    fprintf(panel->out, "  <path class=\"line1\" d=\"M%d %dH%d\"/>\n", step_x(TRAP_THAWS),
            lane_y(panel, LANE_WORKER_1), step_x(TRAP_WRITES_1));
    cli_svg_text(panel->out, step_x(TRAP_THAWS) + 8, lane_y(panel, LANE_WORKER_1) + 17, "note",
                 "thaws");

    fprintf(panel->out, "  <path class=\"line2\" d=\"M%d %dH%d\"/>\n", step_x(TRAP_TAKES_2),
            lane_y(panel, LANE_WORKER_2), step_x(TRAP_WRITES_2));
    dot(panel, LANE_WORKER_2, TRAP_TAKES_2, "two", "takes lock");
    (void)snprintf(text, sizeof text, "reads %ld", run->read_2);
    dot(panel, LANE_WORKER_2, TRAP_READS_2, "two", text);
    (void)snprintf(text, sizeof text, "writes %ld", run->read_2 + TRAP_DEPOSIT_2);
    dot(panel, LANE_WORKER_2, TRAP_WRITES_2, "two", text);
}

static void draw_lock(const struct panel *panel)
{
    const struct trap_run *run = panel->run;
    char token[32];
    char text[96];

    (void)snprintf(text, sizeof text, "worker 1, token %s",
                   trap_short_token(token, run->token_1, run->token_2));
    bar(panel, LANE_LOCK, (struct span){step_x(TRAP_TAKES_1), step_x(TRAP_EXPIRES)}, "bar1",
        (step_x(TRAP_TAKES_1) + step_x(TRAP_EXPIRES)) / 2, text);
    (void)snprintf(text, sizeof text, "worker 2, token %s",
                   trap_short_token(token, run->token_2, run->token_1));
    /* Between the arrows that cross it. */
    bar(panel, LANE_LOCK, (struct span){step_x(TRAP_TAKES_2), RIGHT - 10}, "bar2",
        (step_x(TRAP_WRITES_2) + step_x(TRAP_WRITES_1)) / 2, text);
}

static void draw_account(const struct panel *panel)
{
    const struct trap_run *run = panel->run;
    int y = lane_y(panel, LANE_ACCOUNT);
    int write_1 = step_x(TRAP_WRITES_1);
    int write_2 = step_x(TRAP_WRITES_2);
    char text[64];

    (void)snprintf(text, sizeof text, "%ld", run->read_1);
    bar(panel, LANE_ACCOUNT, (struct span){LEFT + 18, write_2 - 2}, "calm",
        (LEFT + 18 + write_2) / 2, text);
    (void)snprintf(text, sizeof text, "%ld", run->read_2 + TRAP_DEPOSIT_2);
    bar(panel, LANE_ACCOUNT, (struct span){write_2 + 2, run->refused ? RIGHT - 10 : write_1 - 2},
        "bar2", (write_2 + write_1) / 2, text);
    arrow(panel, write_2, lane_y(panel, LANE_WORKER_2) + 7, y - BAR / 2 - 3, "line2", "a2");
    if (!run->refused) {
        (void)snprintf(text, sizeof text, "%ld", run->final_balance);
        bar(panel, LANE_ACCOUNT, (struct span){write_1 + 2, RIGHT - 10}, "wrong",
            (write_1 + RIGHT - 10) / 2, text);
    }
}

/* The mark stands guard above the account: it rises when worker 2 enters. */
static void draw_fence(const struct panel *panel)
{
    const struct trap_run *run = panel->run;
    int y = lane_y(panel, LANE_ACCOUNT) - BAR / 2 - 7;
    char token[32];
    char text[96];

    fprintf(panel->out, "  <line class=\"fence\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n",
            step_x(TRAP_READS_1), y, RIGHT - 10, y);
    fprintf(panel->out, "  <path class=\"fence\" fill=\"none\" d=\"M%d %dv8M%d %dv8\"/>\n",
            step_x(TRAP_READS_1), y - 4, step_x(TRAP_READS_2), y - 4);
    (void)snprintf(text, sizeof text, "fence at %s",
                   trap_short_token(token, run->token_1, run->token_2));
    cli_svg_text(panel->out, step_x(TRAP_READS_1) + 2, y + BAR + 22, "fencetext", text);
    (void)snprintf(text, sizeof text, "raised to %s",
                   trap_short_token(token, run->token_2, run->token_1));
    cli_svg_text(panel->out, step_x(TRAP_READS_2) - 60, y + BAR + 22, "fencetext", text);
}

static void draw_last_write(const struct panel *panel)
{
    const struct trap_run *run = panel->run;
    int x = step_x(TRAP_WRITES_1);
    int from = lane_y(panel, LANE_WORKER_1);
    int to = lane_y(panel, LANE_ACCOUNT) - BAR / 2 - (run->fenced ? 16 : 3);
    char text[64];

    fprintf(panel->out, "  <circle class=\"bad\" cx=\"%d\" cy=\"%d\" r=\"5\"/>\n", x, from);
    (void)snprintf(text, sizeof text, "writes %ld", run->read_1 + TRAP_DEPOSIT_1);
    cli_svg_text(panel->out, x, from - 12, "note mid strong bad", text);
    if (!run->refused) {
        arrow(panel, x, from + 6, to, "linebad", "ab");
        cli_svg_text(panel->out, x + 12, lane_y(panel, LANE_WORKER_2) + 4, "note strong bad",
                     "overwrites 120");
        return;
    }
    fprintf(panel->out, "  <path class=\"linebad\" d=\"M%d %dV%d\"/>\n", x, from + 6, to);
    fprintf(panel->out, "  <path class=\"linebad\" d=\"M%d %dl14 14m0 -14l-14 14\"/>\n", x - 7,
            to + 1);
    cli_svg_text(panel->out, x + 12, lane_y(panel, LANE_WORKER_2) + 4, "note strong bad",
                 "refused: stale");
}

static void draw_panel(FILE *out, const struct trap_run *run, int top)
{
    const struct panel panel = {.out = out, .run = run, .top = top};
    char text[160];

    draw_frame(&panel);
    draw_workers(&panel);
    draw_lock(&panel);
    draw_account(&panel);
    if (run->fenced)
        draw_fence(&panel);
    draw_last_write(&panel);
    if (run->refused)
        (void)snprintf(text, sizeof text,
                       "%ld is right: nothing is lost, and worker 1 knows that it must start again",
                       run->final_balance);
    else
        (void)snprintf(text, sizeof text,
                       "%ld instead of %d: a deposit is gone, and nobody was told",
                       run->final_balance, TRAP_START + TRAP_DEPOSIT_1 + TRAP_DEPOSIT_2);
    cli_svg_text(out, RIGHT - 10, top + 24,
                 run->refused ? "note end strong good" : "note end strong bad", text);
}
