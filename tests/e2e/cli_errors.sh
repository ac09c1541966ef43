#!/bin/sh
# cli_errors.sh TALLY SOURCE_DIR: the errors people will meet. Each must name file, line or value, say what to do, and end
# with the documented exit code. No engine is needed.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"
trap 'chmod -R u+w "$dir" 2>/dev/null; [ -n "${mounted:-}" ] && umount "$mounted" 2>/dev/null; rm -rf "$dir"' EXIT
skipped=0
export TALLY_CACHE="$dir/cache"
mkdir -p reports

not_ok() { failed=$((failed + 1)); echo "FAIL $1"; sed 's/^/     /' "$dir/err"; }
skip() { skipped=$((skipped + 1)); echo "skip $1: $2"; }

# expect NAME CODE PART... -- COMMAND...: exit code, and every PART in what it printed
expect() {
  name=$1 code=$2; shift 2; parts=
  while [ "$1" != -- ]; do parts="$parts$1
"; shift; done
  shift
  timeout 60 "$@" >"$dir/out" 2>"$dir/err" </dev/null; got=$?
  if [ "$got" != "$code" ]; then echo "exit code $got, expected $code" >>"$dir/err"; not_ok "$name"; return; fi
  missing=$(printf '%s' "$parts" | while IFS= read -r part; do
    grep -qF -- "$part" "$dir/out" "$dir/err" || printf "lacks '%s'\n" "$part"; done)
  if [ -n "$missing" ]; then echo "$missing" >>"$dir/err"; not_ok "$name"; else ok "$name"; fi
}

experiment() { # experiment FILE EXTRA: a small valid experiment with one more line
  cat >"experiments/measure/$1.lua" <<L
local tally = require "tally"
return tally.experiment {
  id = "$1", map = "measure", title = { en = "t" }, question = { en = "q" },
  axes = { model = tally.models { tally.file { name = "m", path = "m.gguf" } } },
  workload = tally.completion { prompt_tokens = 8, output_tokens = 8 },
  $2
}
L
}

# ---- the experiment file
experiment valid ''
experiment typo 'repeets = { min = 1 },'
expect "unknown field" 2 "experiments/measure/typo.lua:6" "unknown field 'repeets'" "did you mean 'repeats'" -- "$tally" plan typo
experiment type 'repeats = { min = "three" },'
expect "mistyped field" 2 "type.lua:6" "must be integer" "'three'" -- "$tally" plan type
printf 'return {\n  a = = 1\n}\n' >experiments/measure/syntax.lua
expect "Lua syntax error" 2 "syntax.lua:2" -- "$tally" plan syntax
printf 'local function f()\n  error("boom")\nend\nf()\n' >experiments/measure/runtime.lua
expect "Lua run-time error with traceback" 2 "runtime.lua:2: boom" "stack traceback" -- "$tally" plan runtime
printf 'while true do end\n' >experiments/measure/endless.lua
expect "endless loop" 2 "endless.lua" "endless loop" -- "$tally" plan endless
printf 'os.execute("touch %s/pwned")\n' "$dir" >experiments/measure/os.lua
expect "a script that tries os" 2 "'os' is not available" -- "$tally" plan os
printf 'local f = io.open("/etc/passwd")\n' >experiments/measure/io.lua
expect "a script that tries io" 2 "'io' is not available" -- "$tally" plan io
[ -e "$dir/pwned" ] && not_ok "os.execute really ran" || ok "nothing ran"
expect "unknown experiment" 4 "no experiment 'typ'" "did you mean" -- "$tally" plan typ
expect "unknown verb" 2 "did you mean" -- "$tally" rnu
expect "unknown option" 2 "--josn" "did you mean" -- "$tally" list runs --josn
expect "set of an unknown field" 2 "nope" -- "$tally" plan valid --set nope=3

# ---- models
printf '#!/bin/sh\necho "error: failed to load model: out of luck" >&2\nexit 1\n' >fake-server
chmod +x fake-server
expect "model missing" 4 "no file" "m.gguf" -- "$tally" run valid --engine-bin ./fake-server
printf 'not a model at all, but long enough to be read as a header\n' >m.gguf
expect "not a GGUF" 2 "m.gguf" -- "$tally" run valid --engine-bin ./fake-server
"$tally" synth --size 20MB --quant q8_0 --answer 8 -o full.gguf >/dev/null 2>&1
head -c 15000000 full.gguf >m.gguf
expect "truncated model" 2 "m.gguf" "15000000" -- "$tally" run valid --engine-bin ./fake-server
cp full.gguf m.gguf

# ---- the engine
expect "engine not found" 4 "llama-server" -- env PATH=/usr/bin:/bin "$tally" run valid
expect "engine binary that does not exist" 4 "/nowhere/llama-server" -- "$tally" run valid --engine-bin /nowhere/llama-server
expect "engine that dies quotes its own line" 1 "out of luck" -- "$tally" run valid --engine-bin ./fake-server
expect "the failed run is stored" 0 "failed" -- "$tally" list runs
expect "endpoint where nobody listens" 1 "127.0.0.1:9" -- "$tally" run valid --endpoint http://127.0.0.1:9

# ---- the database
expect "no database yet" 4 "none.db" -- "$tally" --db none.db list runs
printf 'hello, I am a text file, certainly not a database of any kind, and rather long for one line of text as well\n' >text.db
expect "not a database" 2 "text.db" -- "$tally" --db text.db list runs
cp tally.db newer.db && sqlite3 newer.db 'PRAGMA user_version=9999' 2>/dev/null
expect "database of a newer tally" 1 "newer.db" "9999" -- "$tally" --db newer.db list runs
sqlite3 foreign.db 'CREATE TABLE t(x); INSERT INTO t VALUES(1)'
expect "somebody else's database" 2 "foreign.db" -- "$tally" --db foreign.db list runs
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$dir/small"
  if mount -t tmpfs -o size=600k tmpfs "$dir/small" 2>/dev/null; then
    mounted=$dir/small
    cp tally.db "$dir/small/tally.db" 2>/dev/null
    dd if=/dev/zero of="$dir/small/fill" bs=4k 2>/dev/null
    expect "full disk" 1 "small" -- "$tally" --db "$dir/small/tally.db" run valid --engine-bin ./fake-server
    rm -f "$dir/small/fill"
    expect "after the full disk the database is whole" 0 "nothing was changed" -- "$tally" --db "$dir/small/tally.db" verify
    mount -o remount,ro "$dir/small" 2>/dev/null &&
      expect "read-only database" 1 "read" -- "$tally" --db "$dir/small/tally.db" run valid --engine-bin ./fake-server
    umount "$dir/small"; mounted=
  else skip "full disk" "this container cannot mount a tmpfs"; fi
else
  chmod 555 .; chmod 444 tally.db
  expect "read-only database" 1 "tally.db" -- "$tally" run valid --engine-bin ./fake-server
  chmod 755 .; chmod 644 tally.db
  skip "full disk" "needs root to mount a small file system"
fi
# another process holds the write lock for longer than tally waits
( printf 'BEGIN IMMEDIATE;\n'; sleep 45 ) | sqlite3 tally.db & holder=$!
sleep 1
expect "database locked by another" 1 "tally.db" "lock" -- "$tally" run valid --engine-bin ./fake-server
kill $holder 2>/dev/null; pkill -P $holder 2>/dev/null; wait $holder 2>/dev/null

# ---- surroundings
mkdir -p reports/r && cat >reports/r/report.md <<'M'
---
title: naked
lang: en
---

It runs at 42 tok/s.
M
expect "naked number" 3 "report.md:6" "42" -- "$tally" report check r
expect "LANG=C" 0 "GB/s" -- env LANG=C LC_ALL=C "$tally" show machine t1
expect "decimal-comma locale" 0 '"value": 504' -- env LC_ALL=de_DE.UTF-8 "$tally" show machine t1
expect "help names an example" 0 "tally run" "Exit" -- "$tally" run --help
expect "no terminal, no escape codes" 0 "experiment" -- "$tally" list runs
grep -q "$(printf '\033')" "$dir/out" "$dir/err" && not_ok "escape codes on a pipe" || ok "no escape codes on a pipe"
expect "rerun of a file that is not a report" 2 "fake-server" -- "$tally" rerun fake-server#fig-1
expect "rerun of a missing file" 4 "nothing.html" -- "$tally" rerun nothing.html#fig-1
expect "edited database is noticed" 0 "nothing was changed" -- "$tally" verify
sqlite3 tally.db 'DROP TRIGGER IF EXISTS run_no_update; PRAGMA writable_schema=ON; DELETE FROM sqlite_master WHERE type="trigger"; PRAGMA writable_schema=OFF;' 2>/dev/null
expect "dropped triggers are noticed" 3 "trigger" -- "$tally" verify

finish
