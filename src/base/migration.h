/* migration.h - SQL migrations that are compiled in: sections of a text, with names quoted into
 * them.
 *
 * A text has sections, each after a line "-- @section NAME". In them words such as @SCHEMA@ stand
 * for what the caller says. They never stand inside a function body or a literal: there every byte
 * of a quoted name but a control character is harmless. */
#ifndef HF_BASE_MIGRATION_H
#define HF_BASE_MIGRATION_H

#include "base/base.h"

/* The order is that of enum hf_fence_dialect. */
enum hf__dialect { HF__POSTGRES, HF__SQLITE, HF__MARIADB, HF__DIALECTS };

enum {
    HF__SQL_NAME_MAX = 200,                        /* bytes of the longest name, in any dialect */
    HF__SQL_QUOTED_SIZE = 2 * HF__SQL_NAME_MAX + 3 /* every byte doubled, quotes, NUL */
};

/* What stands for a word of the text. A list of them ends with a NULL word. */
struct hf__migration_word {
    const char *word; /* "@SCHEMA@" */
    const char *value;
};

/* hf__sql_name - writes a name as a quoted identifier of the dialect. HF_INVALID: it is empty,
 * longer than the server keeps, or has control characters. */
enum hf_status hf__sql_name(char out[HF__SQL_QUOTED_SIZE], enum hf__dialect dialect,
                            const char *name, struct hf_error *err);

/* hf__migration_text - the sections (a list that ends with NULL) of text, in that order; one that
 * the text does not have is left out. *out is the caller's, to be freed with free(). HF_OK;
 * HF_NOMEM. */
enum hf_status hf__migration_text(const char *text, const char *const *sections,
                                  const struct hf__migration_word *words, char **out,
                                  struct hf_error *err);

#endif /* HF_BASE_MIGRATION_H */
