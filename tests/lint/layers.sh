#!/bin/sh
# Checks that each module includes only what layers.txt allows, and third-party headers only where owners.txt says.
cd "$(dirname "$0")/../.." || exit 2
{
  for dir in harness/*/; do
    m=$(basename "$dir")
    grep -q "^$m:" tests/lint/layers.txt || echo "tests/lint/layers.txt:1: has no line for harness/$m"
    allowed=$(sed -n "s/#.*//; s/^$m: *//p" tests/lint/layers.txt | tr -d '+')
    # FILE:LINE:#include "module/header.h"
    grep -nE '^ *# *include "[a-z0-9_]+/' "$dir"*.[ch] /dev/null | while IFS= read -r hit; do
      place=$(printf '%s\n' "$hit" | cut -d: -f1,2)
      header=${hit#*\"}; header=${header%%\"*}
      [ "${header%%/*}" = "$m" ] && continue
      case " $allowed " in *" ${header%%/*} "*) ;; *) echo "$place: includes $header, which layers.txt does not allow to $m" ;; esac
      case $header in *_impl.h) echo "$place: includes the private header $header of another module" ;; esac
    done
  done
  grep -v '^#' tests/lint/owners.txt | while IFS= read -r line; do
    pattern=${line%%: *} owners=${line##*: }
    grep -nE "^ *# *include <($pattern)" harness/*/*.[ch] | while IFS= read -r hit; do
      file=${hit%%:*}
      m=$(basename "$(dirname "$file")")
      case " $owners " in *" $m "*) ;; *) echo "$(printf '%s\n' "$hit" | cut -d: -f1,2): includes <$pattern>, which belongs to: $owners" ;; esac
    done
  done
} | { ! grep .; } || exit 1
echo "layers: ok"
