#!/bin/sh
# file.t - the models of the embedded store keep their promises in small worlds, and nearly every way to
# break them is noticed; model.t has the rest.
# run: once
exec "$(dirname "$0")/run.sh" soon
