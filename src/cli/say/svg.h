/* svg.h - what the pictures of the commands share: the sheet, its style for light and dark screens,
 * and text that is safe in it. */
#ifndef HF_CLI_SVG_H
#define HF_CLI_SVG_H

#include <stdbool.h>
#include <stdio.h>

/* Opens the file for a picture, without emptying it: an older one stays if there is none in the
 * end. NULL after a message. */
FILE *cli_svg_open(const char *path);
/* Empties the file and starts the sheet, a card with round corners; label says what there is to
 * see, for those who cannot. False, with errno, if the file cannot be emptied. */
bool cli_svg_begin(FILE *out, int width, int height, const char *label);
/* At x, y, in one of the classes of the style; whatever is in text. */
void cli_svg_text(FILE *out, int x, int y, const char *class, const char *text);
/* False, with errno, if anything of it could not be written. */
bool cli_svg_end(FILE *out);

#endif /* HF_CLI_SVG_H */
