#!/bin/sh
# Functions of at most 80 lines and 15 branches (cyclomatic, pmccabe), files of at most 800 lines: harness/, tests/, lua/.
# What may be longer stands in limits.txt with its reason. limits.sh FILE... looks at these files only.
cd "$(dirname "$0")/../.." || exit 2
command -v pmccabe >/dev/null || { echo "limits: not installed (apt-get install pmccabe)"; exit 77; }
part=$#
[ $# = 0 ] && set -- $(find harness tests \( -name '*.c' -o -name '*.h' \) | sort)
{
  pmccabe $(printf '%s\n' "$@" | grep '[.]c$') |
    sed -nE 's/^([0-9]+)\t([0-9]+)\t([0-9]+)\t([0-9]+)\t([0-9]+)\t([^(]+)\([0-9]+\): (.*)$/F \6 \4 \7 \5 \2/p'
  # awk's own count: `wc -l` would add a line of totals
  awk 'FNR == 1 && f { print "L", f, n } { f = FILENAME; n = FNR } END { if (f) print "L", f, n }' "$@"
  [ "$part" = 0 ] && find lua machines experiments -name '*.lua' -exec awk 'END { print "L", FILENAME, FNR }' {} \;
} | awk -v part="$part" '
  BEGIN {
    while ((getline line < "tests/lint/limits.txt") > 0) {
      if (line ~ /^#/ || line == "") continue
      split(line, a, " ")
      if (line !~ /^[^ ]+ (lines|branches|length): ./) { print "tests/lint/limits.txt: no reason in: " line; bad = 1; continue }
      sub(/:$/, "", a[2]); allowed[a[1] " " a[2]] = 1
    }
  }
  function over(file, line, place, kind, have, limit) {
    if (have <= limit) return
    if ((place " " kind) in allowed) { used[place " " kind] = 1; return }
    bad = 1
    if (kind == "length") printf "%s:%d: %d lines, the limit is %d\n", file, have, have, limit
    else printf "%s:%d: %s has %d %s, the limit is %d\n", file, line, substr(place, index(place, ":") + 1), have, kind, limit
  }
  $1 == "F" { n++; over($2, $3, $2 ":" $4, "lines", $5, 80); over($2, $3, $2 ":" $4, "branches", $6, 15) }
  $1 == "L" { files++; over($2, 0, $2, "length", $3, 800) }
  END {
    for (k in allowed) if (!part && !(k in used)) { print "tests/lint/limits.txt: not needed any more: " k; bad = 1 }
    if (!bad) printf "limits: ok, %d functions in %d files\n", n, files
    exit bad
  }'
