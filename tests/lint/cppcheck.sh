#!/bin/sh
# cppcheck over harness/: warnings, portability, performance. What is let through stands in cppcheck.txt with its reason.
cd "$(dirname "$0")/../.." || exit 2
command -v cppcheck >/dev/null || { echo "cppcheck: not installed (apt-get install cppcheck)"; exit 77; }
list=$(mktemp) || exit 2
trap 'rm -f "$list"' EXIT
grep -v '^#' tests/lint/cppcheck.txt | while IFS= read -r line; do
  file=${line%%: *}; rest=${line#*: }; id=${rest%%: *}
  case $rest in *": "?*) ;; *) echo "tests/lint/cppcheck.txt: no reason for '$line'" >&2; echo bad ;; esac
  case $file in '*') echo "$id" ;; *) echo "$id:$file" ;; esac
done >"$list"
grep -qx bad "$list" && exit 1
cppcheck -j2 -q --std=c11 --enable=warning,portability,performance --suppressions-list="$list" --error-exitcode=1 \
  --template='{file}:{line}: {message} [{id}]' -D__linux__=1 -D_GNU_SOURCE=1 -U__APPLE__ \
  --include=tests/lint/cppcheck-macros.h -Iharness harness || exit 1
echo "cppcheck: ok"
