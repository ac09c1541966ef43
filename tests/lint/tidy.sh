#!/bin/sh
# tidy.sh [--full] [FILE...]: clang-tidy (.clang-tidy) over harness/. Without --full: the files that differ from the last
# commit, and the few where hostile bytes come in; with --full: all.
cd "$(dirname "$0")/../.." || exit 2
tidy=
for t in clang-tidy clang-tidy-14 clang-tidy-15 clang-tidy-16; do command -v $t >/dev/null && { tidy=$t; break; }; done
[ -n "$tidy" ] || { echo "tidy: not installed (apt-get install clang-tidy)"; exit 77; }
db=
for d in ${TL_BUILD:-build-asan} build build-*; do [ -f "$d/compile_commands.json" ] && { db=$d; break; }; done
[ -n "$db" ] || { echo "tidy: no compile_commands.json; configure first: cmake --preset asan"; exit 77; }
full=0
[ "${1:-}" = --full ] && { full=1; shift; }
if [ $# -gt 0 ]; then files=$*
elif [ $full = 1 ]; then files=$(ls harness/*/*.c)
else
  files="harness/http/split.c harness/model/gguf.c harness/base/json.c harness/base/text.c harness/vcs/remote.c harness/value/unit.c
$( { git diff --name-only --diff-filter=d HEAD -- 'harness/*.c' && git diff --name-only --diff-filter=d HEAD~1 HEAD -- 'harness/*.c'; } 2>/dev/null)"
fi
out=$(mktemp -d) || exit 2
trap 'rm -rf "$out"' EXIT
# only what is built: a file of another platform has no entry, and none of its headers either
known=$(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$db/compile_commands.json" | sed 's|^.*/harness/|harness/|' | sort -u)
files=$(for f in $files; do printf '%s\n' "$known" | grep -qx "$f" && printf '%s\n' "$f"; done | sort -u)
printf '%s\n' "$files" | grep . | xargs -P "$(nproc 2>/dev/null || sysctl -n hw.ncpu)" -I{} sh -c '
  "$0" --quiet -p "$1" "$3" >"$2/$(echo "$3" | tr / _)" 2>/dev/null || : >"$2/bad"' "$tidy" "$db" "$out" {}
if [ -f "$out/bad" ]; then
  cat "$out"/harness_* | grep -E '(error|warning):' | sed "s|^$PWD/||" | sort -u
  exit 1
fi
echo "tidy: ok, $(printf '%s\n' "$files" | grep -c .) files$([ $full = 1 ] || echo ' (all with --full)')"
