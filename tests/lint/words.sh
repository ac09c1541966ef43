#!/bin/sh
# Words that must not be in the tree: notes about unfinished work, paths and hosts of one machine, misspellings.
# What codespell takes for a mistake and is none stands in words.txt with its reason.
cd "$(dirname "$0")/../.." || exit 2
bad=0
trees='harness lua tests experiments machines reports'
# refuse REASON PATTERN PLACE...: an extended expression, as whole words
refuse() {
  reason=$1 pattern=$2; shift 2
  grep -rnIE --exclude=words.sh --exclude-dir=corpus "$pattern" "$@" | sed "s|:\([0-9]*\):.*|:\1: $reason|" | grep . && bad=1
}
# shellcheck disable=SC2086 # a list of folders
refuse 'a note about unfinished work' '\b(TODO|FIXME|HACK)\b|\bXXX\b([^-]|$)|[Ff]or now\b|\b[Nn]ot (yet )?implemented\b|\bcoming soon\b' \
  $trees README.md README.zh-TW.md .ci CMakeLists.txt
grep -rnIE --exclude=words.sh --exclude-dir=corpus '\b([Pp]laceholder|PLACEHOLDER|lorem ipsum)\b' harness lua experiments machines reports &&
  { echo "  a placeholder"; bad=1; }
# Somebody's folders. A bare /home/ or /root/ (code that scrubs such paths) and the made-up person of its tests are free.
# shellcheck disable=SC2086
refuse 'a path of one machine' '(^|[^A-Za-z0-9_.~$}/-])/(work|workspace|build|mnt|data|scratch)/[a-z]|/(home|Users)/([b-z]|a[^l])[A-Za-z]*|/tmp/[a-z]+/[a-z]' \
  $trees README.md README.zh-TW.md .ci CMakeLists.txt CMakePresets.json
# shellcheck disable=SC2086
refuse 'a host of packages: the machine that builds has its own' \
  'https?://([a-z0-9.-]*(mirror|registry|artifactory|nexus|proxy|pypi|npmjs|crates)[a-z0-9.-]*|(deb|ftp|security|archive|snapshot)\.(debian|ubuntu)\.(org|com)|proxy\.golang\.org|index\.docker\.io)' \
  $trees README.md README.zh-TW.md .ci CMakeLists.txt CMakePresets.json
if command -v codespell >/dev/null; then
  words=$(sed -n 's/^\([^#: ][^: ]*\): ..*/\1/p' tests/lint/words.txt | paste -sd, -)
  # shellcheck disable=SC2086
  codespell -q 3 --skip '*/lint/words.*,*/corpus/*,*/streams/*.json,*.gguf' ${words:+-L "$words"} --ignore-regex '\\n[A-Z][a-z]*|"[^"]*"' \
    $trees README.md .ci CMakeLists.txt || bad=1
else
  [ $bad = 0 ] && { echo "words: codespell is not installed (apt-get install codespell)"; exit 77; }
fi
[ $bad = 0 ] && echo "words: ok"
exit $bad
