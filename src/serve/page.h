/* page.h - the page, which is src/serve/page.html, compiled in. */
#ifndef HF_SERVE_PAGE_H
#define HF_SERVE_PAGE_H

#include "serve/serve.h"

/* GET /: the page, with a policy that lets it run its own script and talk to its own server. */
serve_handler serve_page;

#endif /* HF_SERVE_PAGE_H */
