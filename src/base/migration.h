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
    HF__SQL_NAME_MAX = 200,                         /* bytes of the longest name, in any dialect */
    HF__SQL_QUOTED_SIZE = 2 * HF__SQL_NAME_MAX + 3, /* every byte doubled, quotes, NUL */
    HF__SQL_LITERAL_EXTRA = 40                      /* around a literal, with its NUL */
};

/* What stands for a word of the text. A list of them ends with a NULL word. */
struct hf__migration_word {
    const char *word; /* "@SCHEMA@" */
    const char *value;
};

/* hf__sql_clean - whether a text has 1 to max bytes and no control characters. */
bool hf__sql_clean(const char *text, size_t max);

/* hf__sql_name - writes a name as a quoted identifier of the dialect. HF_INVALID: it is empty,
 * longer than the server keeps, or has control characters. */
enum hf_status hf__sql_name(char out[HF__SQL_QUOTED_SIZE], enum hf__dialect dialect,
                            const char *name, struct hf_error *err);

/* hf__sql_quote - writes prefix and name as one quoted identifier, of at most HF__SQL_QUOTED_SIZE
 * bytes and the prefix. The name is known to be good. */
void hf__sql_quote(char *out, enum hf__dialect dialect, const char *prefix, const char *name);

/* hf__sql_literal - writes text as a literal that means the same whatever the server thinks of
 * backslashes. size: twice the length of text and HF__SQL_LITERAL_EXTRA. */
void hf__sql_literal(char *out, size_t size, enum hf__dialect dialect, const char *text);

/* hf__migration_text - the sections (a list that ends with NULL) of text, in that order; one that
 * the text does not have is left out. *out is the caller's, to be freed with free(). HF_OK;
 * HF_NOMEM. */
enum hf_status hf__migration_text(const char *text, const char *const *sections,
                                  const struct hf__migration_word *words, char **out,
                                  struct hf_error *err);

/* How a migration is wanted. */
struct hf__migration_form {
    bool no_transaction; /* without BEGIN and COMMIT: the tool has its own */
    bool json;           /* a JSON array, one statement per item: the same, and nothing that only
                          * the database's own client understands */
};
/* hf__migration_shape - replaces *text by the same migration in that form. HF_OK; HF_NOMEM: *text
 * is spoilt, and still the caller's. */
enum hf_status hf__migration_shape(const struct hf__migration_form *form, char **text,
                                   struct hf_error *err);

#endif /* HF_BASE_MIGRATION_H */
