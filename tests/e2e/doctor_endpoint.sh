#!/bin/sh
# doctor_endpoint.sh TALLY SOURCE_DIR SCRIPT_SERVER: `tally doctor ENDPOINT` against every scripted stream (habits.txt says
# what must be seen, and that nothing else may be), against what is no endpoint, and against a real llama-server if there
# is one.
tally=$1 source=$2 server=$3
. "$(dirname "$0")/setup.sh"
trap 'kill $pids 2>/dev/null; exec 3>&-; rm -rf "$dir"' EXIT
streams=$source/tests/engine/streams table=$source/tests/engine/habits.txt
pids=
unset TALLY_API_KEY

stream() { printf '%s' "$2" >"$dir/$1.json"; } # NAME JSON: a stream of this test alone
json() { sqlite3 :memory: "SELECT $1 FROM (SELECT json(readfile('$dir/out')) AS j)"; }
says() { grep -qF -- "$1" "$dir/out" "$dir/err"; }
exits() { want=$1; shift; go "$tally" doctor "$@"; [ $? = "$want" ]; }

# ---- one server plays them all, each below a path of its own
stream key '{"status": 401, "close": "length", "headers": {"Content-Type": "application/json"}, "writes": [[1, "{\"error\": {\"message\": \"Invalid API key\"}}"]]}'
stream nomodel '{"status": 400, "close": "length", "headers": {"Content-Type": "application/json"}, "writes": [[1, "{\"error\": {\"message\": \"model is required\"}}"]]}'
stream models '{"close": "length", "headers": {"Content-Type": "application/json"}, "writes": [[1, "{\"data\": [{\"id\": \"qwen-a\"}, {\"id\": \"qwen-b\"}]}"]]}'
stream moved '{"status": 301, "close": "length", "headers": {"Location": "http://elsewhere/"}, "writes": [[1, "x"]]}'
stream silent '{"writes": [], "close": "hang"}'
stream garbage '{"raw": true, "close": "close", "writes": [[1, "SSH-2.0-OpenSSH_9.2\r\n"]]}'
stream prose '{"writes": [[1, "It works!"]]}'
set --
for f in "$streams"/*.json; do
  n=$(basename "$f" .json)
  for p in v1/chat/completions v1/completions completion api/chat; do set -- "$@" --path "/$n/$p=$f"; done
done
for n in key nomodel moved silent garbage prose; do set -- "$@" --path "/$n/v1/chat/completions=$dir/$n.json"; done
mkfifo "$dir/stdin"
"$server" --log "$dir/log" --path "/nomodel/v1/models=$dir/models.json" "$@" <"$dir/stdin" >"$dir/url" 2>"$dir/err" &
pids=$!
exec 3>"$dir/stdin"
n=0; while [ ! -s "$dir/url" ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
url=$(cat "$dir/url")
[ -n "$url" ] || { echo "the scripted server did not start"; cat "$dir/err"; exit 1; }

# ---- habits: what the table says, and nothing else. A loaded machine may move reads together: three tries.
seen() { json "(SELECT group_concat(' ' || json_extract(value, '\$.habit'), '') FROM json_each(j, '\$.habits') WHERE json_extract(value, '\$.state') = 'seen')"; }
shows() { # STREAM HABITS
  dialect=$(sqlite3 :memory: "SELECT coalesce(json_extract(readfile('$streams/$1.json'), '\$.dialect'), 'openai-chat')")
  for try in 1 2 3; do
    go "$tally" doctor "$url/$1" --dialect "$dialect" --requests 1 --timeout 20 --json || return 1
    got=$(seen)
    [ "$got" = "$2" ] && return 0
    echo "     $1, try $try: sees$got"
  done
  return 1
}
refused() { # STREAM WORDS
  case $1 in ollama-*) dialect=ollama-chat ;; *) dialect=openai-chat ;; esac
  go "$tally" doctor "$url/$1" --dialect $dialect --requests 1 --timeout 1 && return 1
  says "$2" && grep -q '→' "$dir/err"
}
while IFS= read -r line; do
  case $line in
    '#'*) ;;
    *!*) check "${line%%!*} is refused" refused "${line%%!*}" "${line#*! }" ;;
    *) check "${line%%:*} shows${line#*:}" shows "${line%%:*}" "${line#*:}" ;;
  esac
done <"$table"
check "every stream stands in the table" [ "$(ls "$streams"/*.json | wc -l)" = "$(grep -vc '^#' "$table")" ]

# ---- what is sent, and what is said
: >"$dir/log"
check "three answers" exits 0 "$url/role-first"
[ "$failed" = 0 ] && cat "$dir/out"
check "habits are measured, with their evidence" grep -qE 'role chunk before the first text +seen +3 of 3 answers: 1[0-9]{2}\.[0-9]+ ms before' "$dir/out"
check "and labelled" says '[measured]'
check "who goes wrong, by how much, and why" grep -qE '^vllm +mis-measures +TTFT 1[0-9]{2}\.[0-9] ms too short, of 2[0-9]{2}\.[0-9]: role chunk counted as first token' "$dir/out"
check "who fails" says 'fails on 3 of 3 answers: `choices:[]`: IndexError'
check "who does not" grep -qE 'as tally.*aiperf' "$dir/out"
check "three plain requests, and two more" [ "$(wc -l <"$dir/log")" = 5 ]
check "a limit of tally has its remedy" exits 0 "$url/all-in-one-write" -r 1
check "buffering" says 'proxy_buffering off'
check "an address with /v1 at its end" exits 0 "$url/clean/v1/" -r 1
check "an address with its whole path" exits 0 "$url/clean/v1/chat/completions" -r 1
check "nothing is stored" [ ! -e tally.db ]

# ---- what is no endpoint: each names it and says what to do
check "no server" exits 4 http://127.0.0.1:9
check "nobody answers" says 'nobody answers there'
check "start it" says 'start the server'
check "no such path" exits 4 "$url/nothing/here"
check "404" says 'no LLM endpoint, or no such model (HTTP 404)'
check "a key is needed" exits 4 "$url/key"
check "how to give one" says 'TALLY_API_KEY'
check "a model is needed" exits 2 "$url/nomodel"
check "its words, and what it has" says 'it has: qwen-a, qwen-b'
check "the server's own words" says 'model is required'
check "a redirect" exits 1 "$url/moved"
check "where to" says 'http://elsewhere/'
check "a server that stalls" exits 1 "$url/silent" --timeout 1
check "for how long" says 'no end of the answer within 1 s (0 bytes came)'
check "garbage" exits 1 "$url/garbage"
check "no HTTP" says 'speaks no HTTP'
check "prose" exits 4 "$url/prose"
check "quoted" says 'It works!'
python3 -u -m http.server 0 --bind 127.0.0.1 >"$dir/web" 2>&1 & pids="$pids $!"
n=0; while ! grep -q 'port' "$dir/web" && [ $n -lt 100 ]; do sleep 0.1; n=$((n + 1)); done
check "a web server" exits 4 "http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\).*/\1/p' "$dir/web")"
check "is no LLM endpoint" says 'no LLM endpoint'
check "no address" exits 2 here
check "no address: how one looks" says 'http://HOST:PORT'
check "options of a server without one" exits 2 --model m
check "an unknown dialect" exits 2 "$url/clean" --dialect openai-chta
check "did you mean" says 'did you mean openai-chat'

"$tally" doctor "$url/silent" >"$dir/out" 2>"$dir/err" </dev/null & pid=$!
sleep 1; kill -TERM $pid; wait $pid; code=$?
check "SIGTERM ends it" [ $code = 1 ]
check "and says so" says 'cancelled'

# ---- a key goes to the server, and nowhere else
TALLY_API_KEY=sesame go "$tally" doctor "$url/clean" -r 1 --json
check "the key is not shown" sh -c '! grep -q sesame "$1" "$2"' - "$dir/out" "$dir/err"

# ---- a real server
if command -v llama-server >/dev/null || [ -x "$cache/llama.cpp/bin/llama-server" ]; then
  engine=$(command -v llama-server || echo "$cache/llama.cpp/bin/llama-server")
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  check "a small model" go "$tally" synth --size 40MB --quant q4_0 --answer 200 -o m.gguf
  "$engine" -m m.gguf --host 127.0.0.1 --port "$port" -c 512 >"$dir/engine" 2>&1 & pids="$pids $!"
  n=0; while ! exits 0 "127.0.0.1:$port" --requests 1 --timeout 60 && [ $n -lt 120 ]; do sleep 0.5; n=$((n + 1)); done
  check "llama-server" exits 0 "127.0.0.1:$port" --timeout 60
  cat "$dir/out"
  for habit in 'usage in a record of its own' 'a connection for one answer only'; do
    check "llama-server: $habit" grep -qE "^$habit.* +seen +" "$dir/out"
  done
  for habit in 'usage, though not asked for' 'CRLF line ends' '`event:` lines' 'no \[DONE\]' 'an answer without its end' 'compressed when gzip'; do
    check "llama-server: not $habit" grep -qE "^$habit.* +not seen +" "$dir/out"
  done
  check "llama-server: llmperf fails" grep -qE '^llmperf +fails' "$dir/out"
  check "its own dialect" exits 0 "127.0.0.1:$port" --dialect llamacpp-completion --timeout 60
else
  echo "skip a real llama-server: none on PATH or in $cache (sh experiments/engine-setup)"; skipped=1
fi

finish
