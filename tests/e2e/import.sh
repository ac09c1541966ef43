#!/bin/sh
# import.sh TALLY SOURCE_DIR: another tool's file becomes a run of citations with the file beside it, once; nothing in it is
# measured; what was refused and what was never recorded is said.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"
files=$source/tests/unit/import/files

go() { timeout 60 "$tally" "$@" >"$dir/out" 2>"$dir/err" </dev/null; }
says() { grep -qF -- "$1" "$dir/out"; }
complains() { grep -qF -- "$1" "$dir/err"; }
python() { python3 -c "import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not ($1))" "$dir/out"; }

cp "$files"/* .
check "a dry run" go import llama-bench.jsonl --dry-run
check "recognises the tool, its version and form" says "llama-bench Debian 11669, JSON lines; 2 rows found, 2 read, 0 refused; 4 figures [cited]"
check "stores nothing" [ ! -e tally.db ]

check "an import" go import llama-bench.jsonl --machine T3 --source https://example.org/post
run=$(sql "SELECT id FROM run WHERE kind='import'")
check "names its run" says "stored as run $run"
check "every value is cited" [ "$(sql "SELECT count(*), count(DISTINCT label), max(label) FROM value")" = "4|1|cited" ]
check "with who, where, when and the address" [ "$(sql "SELECT count(*) FROM value WHERE json_extract(source,'$.who')='llama-bench Debian 11669' AND json_extract(source,'$.where') LIKE 'llama-bench.jsonl, line %' AND json_extract(source,'$.when') LIKE '20%Z' AND json_extract(source,'$.url')='https://example.org/post'")" = 4 ]
check "with the file's own hash" [ "$(sql "SELECT DISTINCT json_extract(source,'$.sha256') FROM value")" = "$(sha256sum llama-bench.jsonl | cut -d' ' -f1)" ]
check "no machine is claimed, only named" [ "$(sql "SELECT coalesce(r.claim,'none'), m.name FROM run r JOIN machine m ON m.id=r.machine")" = "none|T3" ]
sqlite3 tally.db "SELECT writefile('back', body) FROM artifact WHERE name='llama-bench.jsonl'" >/dev/null
check "the file is kept byte for byte" cmp -s back llama-bench.jsonl

check "show" go show "$run"
check "names source, words of the importer, and conditions" says "of llama-bench.jsonl by llama-bench Debian 11669"
check "says whose word the machine is" says "the machine's name is the importer's word"
check "shows the file's own numbers" says "$(python3 -c 'import json; print(json.loads(open("llama-bench.jsonl").readline())["avg_ts"])')"
check "says what the source lacks" says "not recorded: the model's digest"

cp llama-bench.jsonl another-name
go import another-name; code=$?
check "the same bytes under another name are refused" [ $code = 1 ]
check "and the first run is named" complains "these bytes are run $run already"

go import vllm.json --json; code=$?
check "an import for a program" [ $code = 0 ]
check "has its rows, the run and what is missing" python 'd["found"]==2 and len(d["rows"])==2 and d["run"] and "the machine" in d["missing"]'
check "a number that is none is null" [ "$(sql "SELECT count(*) FROM value WHERE name='mean_tpot_ms' AND number IS NULL AND null_reason LIKE '%NaN%'")" = 1 ]
check "the file says no time zone: its date is kept in its words" [ "$(sql "SELECT count(*) FROM value WHERE json_extract(source,'$.when')='20260817-142530'")" -gt 0 ]

TZ=UTC touch -d '2026-01-02T03:04:05Z' llama-bench.md
check "a table without a time" go import llama-bench.md
check "carries the file's, and says so" [ "$(sql "SELECT count(*) FROM value WHERE name='t/s' AND json_extract(source,'$.when') LIKE '2026-01-02T03:04:05%' AND json_extract(source,'$.when_from') LIKE '%last change'")" = 4 ]
for f in llama-bench.json llama-bench.csv llama-bench.sql batched-bench.jsonl batched-bench.md sglang.jsonl guidellm.json aiperf.json aiperf.csv genai-perf.json genai-perf.csv localscore.json localscore.csv ollama.txt; do
  check "$f" go import "$f"
  check "$f is shown" go show "$(sql "SELECT id FROM run ORDER BY seq DESC LIMIT 1")"
done

runs=$(sql "SELECT count(*) FROM run")
head -c 2000 llama-bench.json >cut.json
go import cut.json; code=$?
check "a file that was cut is refused" [ $code = 2 ]
check "with the remedy" complains "--partial"
check "and stores nothing" [ "$(sql "SELECT count(*) FROM run")" = "$runs" ]
go import cut.json --partial; code=$?
check "unless its complete rows are asked for" [ $code = 0 ]
check "which says what was lost" says "lost: the file is cut off within the object"
check "and the run keeps it" [ "$(sql "SELECT count(*) FROM run WHERE json_extract(facts,'$.lost') LIKE 'the object%'")" = 1 ]

printf 'hello, world\n' >unknown
go import unknown; code=$?
check "an unknown file is refused" [ $code = 2 ]
check "with what was seen" complains "seen: 'hello, world'"
check "and what is recognised" complains "llama-bench, llama-batched-bench, vllm, sglang, guidellm, aiperf, genai-perf"
go import unknown --tool nonsense; code=$?
check "an unknown tool is refused" [ $code = 2 ]
go import not-there; code=$?
check "a file that is not there" [ $code = 4 ]
head -c 67108865 /dev/zero >big
go import big; code=$?
check "a file over the limit" [ $code = 1 ]
check "names it" complains "67108864"
rm big
{ sed -n 1p llama-bench.jsonl; echo 'warning: slow'; echo '{"broken": '; sed -n 2p llama-bench.jsonl; } >dirty.jsonl
check "a file with a warning and a broken row" go import dirty.jsonl
check "lists the refusal by line" says "line 3: the object does not end in its line"
check "and the warning" says "line 2: warning: slow"
check "counts" says "3 rows found, 2 read, 1 refused"

bench=$(command -v llama-bench || echo "$cache/llama.cpp/bin/llama-bench")
if [ -x "$bench" ] && "$tally" synth --size 20MB --quant q8_0 -o tiny.gguf >/dev/null 2>&1; then
  for form in json jsonl csv md sql; do
    timeout 120 "$bench" -m tiny.gguf -p 8 -n 4 -r 2 -t 1 -o $form >real.$form 2>/dev/null
    check "the llama-bench of this machine: $form" go import real.$form
    check "$form: both rows" says "2 rows found, 2 read, 0 refused"
  done
  check "real.jsonl: its numbers to the last digit" [ "$(sql "SELECT v.number FROM value v JOIN run r ON r.id=v.run WHERE v.name='avg_ns' AND json_extract(r.plan,'$.import.file')='real.jsonl' ORDER BY v.seq LIMIT 1" | sed 's/\.0$//')" = "$(python3 -c 'import json; print(json.loads(open("real.jsonl").readline())["avg_ns"])')" ]
else
  skipped=1
  echo "skipped: no llama-bench on PATH or in $cache"
fi
check "verify" go verify

finish
