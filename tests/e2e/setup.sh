# Sourced by the tests of this folder, after `tally` and `source` are set: counts of what held, and an empty project in $dir/p
# to work in. Not a test itself.
[ -x "$tally" ] || { echo "usage: $0 TALLY SOURCE_DIR"; exit 2; }
cache=${TALLY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tally}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0
export NO_COLOR=1
unset TALLY_DB
mkdir -p "$dir/p/machines" "$dir/p/experiments/measure"
cp "$source"/machines/t*.lua "$dir/p/machines/"
cd "$dir/p" || exit 1

ok() { passed=$((passed + 1)); echo "ok   $1"; }
not_ok() { failed=$((failed + 1)); echo "FAIL $1"; tail -n 20 "$dir/out" "$dir/err" 2>/dev/null | sed 's/^/     /'; }
check() { name=$1; shift; if "$@"; then ok "$name"; else not_ok "$name"; fi; }
go() { timeout 300 "$@" >"$dir/out" 2>"$dir/err" </dev/null; }
sql() { sqlite3 -cmd '.timeout 5000' tally.db "$1"; }

# Ends a test that has no llama-server to drive: 77 says that it was skipped.
need_engine() {
  command -v llama-server >/dev/null || [ -x "$cache/llama.cpp/bin/llama-server" ] || {
    echo "skipped: no llama-server on PATH or in $cache (sh experiments/engine-setup)"; exit 77; }
}

# The last line of every test.
finish() {
  printf '[  PASSED  ] %d test(s).\n' "$passed"
  [ "${skipped:-0}" = 0 ] || printf '[  SKIPPED ] %d test(s)\n' "$skipped"
  [ "$failed" = 0 ] || printf '[  FAILED  ] %d test(s)\n' "$failed"
  [ "$failed" = 0 ]
}
