/* svg.c - the odds as a picture: a lane for each ttl, with what it lets through on a logarithmic
 * scale, and what it costs after a crash; the fence below them. */
#include "cli/odds/odds.h"

#include "cli/say/svg.h"

enum {
    WIDTH = 1000,
    TOP = 118, /* of the first lane */
    LANE = 46,
    BAR = 26,
    FOOT = 96,
    LEFT = 132,       /* where the bars of violations start */
    LONGEST = 380,    /* the longest of them */
    SHORTEST = 6,     /* one that is there at all */
    DECADE = 76,      /* how much shorter a bar is for ten times as rare */
    BLOCKED = 700,    /* where the bars of the wait start */
    BLOCKED_MAX = 200 /* the longest of them */
};

#define LN_10 2.30258509299404568402

static void bar(FILE *out, int x, int y, int width, const char *class)
{
    fprintf(out, "  <rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>\n",
            class, x, y - BAR / 2, width, BAR);
}

/* As long as the first one's for as many, a decade shorter for a tenth. */
static int length_of(double per_s, double first_per_s)
{
    int length = LONGEST + (int)(DECADE * hf__odds_ln(per_s / first_per_s) / LN_10);

    return length > SHORTEST ? length : SHORTEST;
}

static void draw_row(FILE *out, const struct hf__odds_story *story, int i, int y)
{
    const struct hf__odds_row *row = &story->rows[i];
    double longest_s = story->rows[odds_rows(story) - 1].ttl_s;
    int blocked = (int)(BLOCKED_MAX * row->ttl_s / longest_s);
    int length = 0;
    char text[ODDS_WORDS];

    cli_svg_text(out, 32, y + 5, "name", odds_duration(text, row->ttl_s));
    if (row->per_s > 0) {
        length = length_of(row->per_s, story->rows[0].per_s);
        bar(out, LEFT, y, length, "wrong");
    }
    cli_svg_text(out, LEFT + length + 10, y + 4, "note strong bad",
                 odds_frequency(text, row->per_s));
    bar(out, BLOCKED, y, blocked > SHORTEST ? blocked : SHORTEST, "calm");
    cli_svg_text(out, BLOCKED + blocked + 10, y + 4, "note", odds_duration(text, row->ttl_s));
}

bool odds_draw(FILE *out, const struct odds_question *question, const struct hf__odds_story *story)
{
    const struct hf__odds *odds = &question->odds;
    int rows = odds_rows(story);
    int height = TOP + (rows + 1) * LANE + FOOT;
    int fence_y = TOP + rows * LANE;
    char text[256], ttl[ODDS_WORDS], rate[ODDS_WORDS], share[ODDS_WORDS];

    if (!cli_svg_begin(out, WIDTH, height,
                       "How often a lease is violated, for several ttls; with a fence no violation "
                       "reaches the data"))
        return false;
    cli_svg_text(out, 32, 40, "title", "A longer lease is violated less often; a fence ends it");
    (void)snprintf(text, sizeof text, "operations: %s; paused for longer than %s: %s",
                   odds_frequency(rate, odds->rate_per_s), odds_duration(ttl, odds->ttl_s),
                   odds_share_words(share, odds->pause));
    cli_svg_text(out, 32, 62, "sub", text);
    cli_svg_text(out, 32, 94, "head", "ttl");
    cli_svg_text(out, LEFT, 94, "head bad", "violations of the lease");
    cli_svg_text(out, BLOCKED, 94, "head", "lock blocked after a crash");
    for (int i = 0; i < rows; i++)
        draw_row(out, story, i, TOP + i * LANE + BAR / 2);
    fprintf(out, "  <line class=\"fence\" x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\"/>\n", LEFT,
            fence_y, WIDTH - 32, fence_y);
    cli_svg_text(out, 32, fence_y + 30, "name good", "with a fence");
    cli_svg_text(out, LEFT, fence_y + 30, "note strong good",
                 "0 violations reach the data, at any ttl: the late write is refused");
    (void)snprintf(text, sizeof text,
                   "Bars of violations are logarithmic. Longer pauses are rarer by the power %g of "
                   "their length.",
                   odds->tail);
    cli_svg_text(out, 32, height - 42, "sub", text);
    cli_svg_text(out, 32, height - 20, "sub", "holdfast odds");
    return cli_svg_end(out);
}
