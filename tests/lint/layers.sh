#!/bin/sh
# Checks that each module includes only what layers.txt allows, and third-party headers only where owners.txt says.
cd "$(dirname "$0")/../.." || exit 2
bad=0
for dir in harness/*/; do
  m=$(basename "$dir")
  allowed=$(sed -n "s/#.*//; s/^$m: *//p" tests/lint/layers.txt | tr -d '+')
  grep -q "^$m:" tests/lint/layers.txt || { echo "harness/$m: not in tests/lint/layers.txt"; bad=1; continue; }
  # quoted includes of other modules
  for inc in $(grep -hoE '^#include "[a-z0-9]+/' "$dir"*.[ch] 2>/dev/null | sed 's/.*"//; s/\///' | sort -u); do
    [ "$inc" = "$m" ] && continue
    case " $allowed " in *" $inc "*) ;; *) echo "harness/$m includes $inc/, which layers.txt does not allow"; bad=1 ;; esac
  done
  # private headers of other modules
  for inc in $(grep -hoE '^#include "[a-z0-9]+/[a-z0-9_]+_impl\.h"' "$dir"*.[ch] 2>/dev/null | sed 's/.*"\(.*\)"/\1/'); do
    case $inc in "$m"/*) ;; *) echo "harness/$m includes the private header $inc"; bad=1 ;; esac
  done
  # functions of platforms live in harness/os
done
grep -v '^#' tests/lint/owners.txt | while IFS= read -r line; do
  pattern=${line%%: *}; owners=${line##*: }
  for f in $(grep -lE "^#include <($pattern)" harness/*/*.[ch] 2>/dev/null); do
    m=$(basename "$(dirname "$f")")
    case " $owners " in *" $m "*) ;; *) echo "$f includes <$pattern>, which belongs to: $owners"; echo x >> /tmp/.tally-lint.$$ ;; esac
  done
done
[ -f /tmp/.tally-lint.$$ ] && { rm -f /tmp/.tally-lint.$$; bad=1; }
[ $bad = 0 ] && echo "layers: ok"
exit $bad
