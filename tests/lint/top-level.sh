#!/bin/sh
# The top folder holds what everybody must meet first, and nothing else. What git ignores (build folders) is left out.
cd "$(dirname "$0")/../.." || exit 2
bad=0 n=0
for f in * .[!.]*; do
  [ -e "$f" ] || continue
  n=$((n + 1))
  case $f in
  CMakeLists.txt|CMakePresets.json|LICENSE|README.md|README.zh-TW.md) ;;
  experiments|harness|lua|machines|reports|tests|.ci|.git) ;;
  .clang-format|.clang-tidy|.gitattributes|.gitignore|.luacheckrc|.editorconfig) ;;
  *)
    [ -e .git ] && git check-ignore -q "$f" 2>/dev/null && continue
    # without git (a source archive) build folders go by their names
    [ ! -e .git ] && case $f in build|build-*|tally.db*) continue ;; esac
    echo "$f:1: not among the files of the top folder; it belongs into one of: experiments harness lua machines reports tests"
    bad=1 ;;
  esac
done
[ $bad = 0 ] && echo "top-level: ok"
exit $bad
