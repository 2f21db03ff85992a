/* svg.c - what the pictures of the commands share. */
#include "cli/say/svg.h"

#include "base/base.h"
#include "cli/cli.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 512 };

static const char style[] =
    "  <style>\n"
    "    .card{fill:#ffffff;stroke:#d8dee6} .lane{stroke:#e3e8ee} .axis{fill:#7b8794}\n"
    "    text{font-family:system-ui,-apple-system,'Segoe UI','DejaVu Sans',Helvetica,Arial,"
    "sans-serif;fill:#1f2933}\n"
    "    .title{font-size:21px;font-weight:700} .sub{font-size:13px;fill:#616e7c}\n"
    "    .head{font-size:15.5px;font-weight:700} .name{font-size:13.5px;font-weight:600}\n"
    "    .note{font-size:12px} .time{font-size:11px;fill:#7b8794;text-anchor:middle}\n"
    "    .mid{text-anchor:middle} .end{text-anchor:end} .strong{font-weight:700}\n"
    "    .one{fill:#2f6fde} .two{fill:#12805c} .bad{fill:#c81e3a} .good{fill:#12805c}\n"
    "    .bar1{fill:#dbe8fd;stroke:#2f6fde} .bar2{fill:#d6f2e6;stroke:#12805c}\n"
    "    .calm{fill:#eef1f5;stroke:#9aa5b1} .wrong{fill:#fde1e5;stroke:#c81e3a}\n"
    "    .ice{fill:url(#ice);stroke:#6d8fb8;stroke-dasharray:4 3} .iceback{fill:#edf4fc}\n"
    "    .line1{stroke:#2f6fde;stroke-width:2;fill:none} .line2{stroke:#12805c;stroke-width:2;"
    "fill:none}\n"
    "    .linebad{stroke:#c81e3a;stroke-width:2.5;fill:none}\n"
    "    .fence{stroke:#b7791f;stroke-width:3} .fencetext{fill:#8f5a0a;font-size:12px;"
    "font-weight:600}\n"
    "    .halo{fill:#ffffff}\n"
    "    @media (prefers-color-scheme:dark){\n"
    "      .card{fill:#161b22;stroke:#30363d} .lane{stroke:#2a313a} text{fill:#e6edf3}\n"
    "      .sub,.time{fill:#9aa5b1} .one{fill:#79b0ff} .two,.good{fill:#56d4a0} "
    ".bad{fill:#ff8093}\n"
    "      .bar1{fill:#1b2f52;stroke:#79b0ff} .bar2{fill:#12382b;stroke:#56d4a0}\n"
    "      .calm{fill:#232a33;stroke:#6b7785} .wrong{fill:#4a1a24;stroke:#ff8093}\n"
    "      .ice{stroke:#7f9dc2} .iceback{fill:#1d2733} .line1{stroke:#79b0ff} "
    ".line2{stroke:#56d4a0}\n"
    "      .linebad{stroke:#ff8093} .fence{stroke:#e3a63c} .fencetext{fill:#f0c36b} "
    ".halo{fill:#161b22}\n"
    "    }\n"
    "  </style>\n"
    "  <defs>\n"
    "    <pattern id=\"ice\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect class=\"iceback\" width=\"8\" height=\"8\"/>"
    "<line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"8\" stroke=\"#8fb0d6\" stroke-width=\"2.5\"/>"
    "</pattern>\n"
    "    <marker id=\"a2\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
    "markerHeight=\"7\" orient=\"auto\"><path class=\"two\" d=\"M0 0L8 4L0 8z\"/></marker>\n"
    "    <marker id=\"ab\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"6.5\" "
    "markerHeight=\"6.5\" orient=\"auto\"><path class=\"bad\" d=\"M0 0L8 4L0 8z\"/></marker>\n"
    "  </defs>\n";

FILE *cli_svg_open(const char *path)
{
    FILE *out = fopen(path, "ae");

    if (out == NULL)
        cli_error("cannot write %s: %s", path, strerror(errno));
    return out;
}

bool cli_svg_begin(FILE *out, int width, int height, const char *label)
{
    /* A pipe has nothing in it that could be cut off. */
    if (ftruncate(fileno(out), 0) != 0 && errno != EINVAL)
        return false;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" aria-label=\"%s\">\n",
            width, height, width, height, label);
    fputs(style, out);
    fprintf(out, "  <rect class=\"card\" x=\"1\" y=\"1\" width=\"%d\" height=\"%d\" rx=\"14\"/>\n",
            width - 2, height - 2);
    return true;
}

void cli_svg_text(FILE *out, int x, int y, const char *class, const char *text)
{
    char printable[TEXT_MAX];

    hf__copy_printable(printable, sizeof printable, text);
    fprintf(out, "  <text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    for (const char *at = printable; *at != '\0'; at++) {
        if (*at == '<')
            fputs("&lt;", out);
        else if (*at == '>')
            fputs("&gt;", out);
        else if (*at == '&')
            fputs("&amp;", out);
        else
            fputc(*at, out);
    }
    fputs("</text>\n", out);
}

bool cli_svg_end(FILE *out)
{
    fputs("</svg>\n", out);
    return fflush(out) == 0 && !ferror(out);
}
