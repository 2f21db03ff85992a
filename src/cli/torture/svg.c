/* svg.c - a torture as a picture: what was done to the workers, and the updates that were lost with
 * and without a fence, over the same time. */
#include "cli/torture/parts.h"

#include "base/base.h"
#include "cli/say/svg.h"

#include <inttypes.h>

enum {
    WIDTH = 1000,
    HEIGHT = 470,
    LEFT = 132,
    RIGHT = 968,
    LANE_TOP = 112, /* of the first lane of faults */
    LANE = 34,
    CURVE_TOP = 240, /* where the curve ends: all that were lost */
    CURVE_BOTTOM = 400
};

static int x_of(const struct torture_report *report, int64_t at_ns)
{
    int64_t lasted_ns = report->story->lasted_ns > 0 ? report->story->lasted_ns : 1;

    if (at_ns > lasted_ns)
        at_ns = lasted_ns;
    return LEFT + (int)((double)(RIGHT - LEFT) * (double)at_ns / (double)lasted_ns);
}

static void draw_faults(FILE *out, const struct torture_report *report)
{
    static const char *const classes[TORTURE_FAULTS] = {"linebad", "line1", "fence"};
    char text[64];

    for (int fault = 0; fault < TORTURE_FAULTS; fault++) {
        unsigned long count = report->story->faults[fault];
        int y = LANE_TOP + fault * LANE;

        (void)snprintf(text, sizeof text, "%s %lu", torture_fault_names[fault], count);
        cli_svg_text(out, 32, y + 5, "name", text);
        fprintf(out, "  <line class=\"lane\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT, y,
                RIGHT, y);
        for (unsigned long i = 0; i < count && i < TORTURE_MARKS_MAX; i++) {
            int x = x_of(report, report->story->marks_ns[fault][i]);

            fprintf(out, "  <path class=\"%s\" d=\"M%d %dv16\"/>\n", classes[fault], x, y - 8);
        }
    }
}

static void draw_curve(FILE *out, const struct torture_report *report, bool fenced, uint64_t most)
{
    const struct torture_story *story = report->story;
    uint64_t last = 0;

    fprintf(out, "  <path class=\"%s\" d=\"", fenced ? "line2" : "linebad");
    for (size_t i = 0; i < story->sample_count; i++) {
        uint64_t lost = fenced ? story->samples[i].fenced_lost : story->samples[i].plain_lost;
        /* While a worker writes, a counter may look one ahead of its writes. */
        uint64_t shown = lost > most ? last : lost;

        fprintf(out, "%s%d %d", i == 0 ? "M" : "L", x_of(report, story->samples[i].at_ns),
                CURVE_BOTTOM -
                    (int)((double)(CURVE_BOTTOM - CURVE_TOP) * (double)shown / (double)most));
        last = shown;
    }
    fputs("\"/>\n", out);
}

static void draw_losses(FILE *out, const struct torture_report *report)
{
    uint64_t most = 1;
    char text[128];

    if (report->sum.plain_lost > most)
        most = report->sum.plain_lost;
    if (report->sum.fenced_lost > most)
        most = report->sum.fenced_lost;
    cli_svg_text(out, 32, CURVE_TOP - 12, "head", "updates lost");
    draw_curve(out, report, false, most);
    draw_curve(out, report, true, most);
    (void)snprintf(text, sizeof text, "without a fence: %" PRIu64 " of %" PRIu64,
                   report->sum.plain_lost, report->sum.plain_writes);
    cli_svg_text(out, LEFT, CURVE_BOTTOM + 24, "note strong bad", text);
    (void)snprintf(text, sizeof text, "with a fence: %" PRIu64 " of %" PRIu64,
                   report->sum.fenced_lost, report->sum.fenced_writes);
    cli_svg_text(out, LEFT + 260, CURVE_BOTTOM + 24,
                 report->sum.fenced_lost == 0 ? "note strong good" : "note strong bad", text);
    (void)snprintf(text, sizeof text, "overlaps: %lu; tokens out of order: %lu",
                   atomic_load(&report->referee->overlaps),
                   atomic_load(&report->referee->disorders));
    cli_svg_text(out, LEFT + 500, CURVE_BOTTOM + 24, "note", text);
}

bool torture_draw(FILE *out, const struct torture_report *report)
{
    char text[384], lasted[32], ttl[32];

    if (!cli_svg_begin(out, WIDTH, HEIGHT,
                       "Workers were killed, frozen and cut off; updates lost with and without a "
                       "fence"))
        return false;
    cli_svg_text(out, 32, 40, "title",
                 report->sum.sound ? "What the lock could not prevent, the fence did"
                                   : "This store does not keep what a lock promises");
    (void)snprintf(
        text, sizeof text, "holdfast torture: %.200s, %s, %d workers on %d locks with a ttl of %s",
        report->shown,
        hf__format_duration(lasted, sizeof lasted, report->story->lasted_ns / HF__NS_PER_MS),
        report->plan->workers, TORTURE_LOCKS,
        hf__format_duration(ttl, sizeof ttl, report->plan->ttl_ms));
    cli_svg_text(out, 32, 62, "sub", text);
    draw_faults(out, report);
    draw_losses(out, report);
    cli_svg_text(out, 32, HEIGHT - 18, "sub", "Time runs from left to right, for all of them.");
    return cli_svg_end(out);
}
