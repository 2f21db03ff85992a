#!/bin/sh
# model.t - the models of redlock's tokens and of the embedded store keep their promises, and every way to
# break them is noticed.
# run: long
exec "$(dirname "$0")/run.sh" long
