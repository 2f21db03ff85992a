#!/bin/sh
# model.t - the model of redlock's tokens keeps its promises, and every way to break it is noticed.
# run: long
exec "$(dirname "$0")/run.sh" quick
