#!/bin/sh
# Every public header compiles alone, under strict flags: whoever includes it needs nothing before it.
cd "$(dirname "$0")/../.." || exit 2
bad=0 n=0
flags=$(pkg-config --cflags jansson 2>/dev/null)
for m in harness/*/; do
  h=$m$(basename "$m").h
  [ -f "$h" ] || { echo "$h:1: a module has one public header of its own name; it is missing"; bad=1; continue; }
  # shellcheck disable=SC2086 # a list of flags
  ${CC:-gcc} -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -Iharness $flags -x c "$h" || bad=1
  n=$((n + 1))
done
[ $bad = 0 ] && echo "headers: ok, $n compile alone"
exit $bad
