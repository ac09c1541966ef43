#!/bin/sh
# show_as.sh TALLY SOURCE_DIR: a real llama-server's answers in the words of other tools, over its chat and its own
# endpoint. Exit 77 (skipped) when there is no engine.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"
need_engine

json() { sqlite3 :memory: "SELECT $1 FROM (SELECT json(readfile('$dir/out')) AS j)"; }

experiment() { # id, workload
  cat >"experiments/measure/$1.lua" <<L
local tally = require "tally"
return tally.experiment {
  id = "$1", map = "measure", day = 10,
  title = { zh = "小", en = "tiny" }, question = { en = "q" },
  axes = { model = tally.models { tally.synth { name = "a", size = "40MB", quant = "q4_0", answer = 40, context = 2048 } } },
  engine = { context = 256, slots = 1 },
  workload = $2,
  repeats = { min = 3, max = 3, until_ci = 0.5 }, probe = { milliseconds = 40 },
  figures = {},
}
L
}
experiment chat 'tally.chat { prompt_tokens = 16, output_tokens = 24, cache = "cold" }'
experiment own 'tally.completion { prompt_tokens = 16, output_tokens = 24, cache = "cold" }'

for id in chat own; do
  check "$id: run" go "$tally" run $id
  check "$id: --as all" go "$tally" show $id --as all
  [ $id = chat ] && cat "$dir/out"
  check "$id: every tool has a row" [ "$(grep -cE '^(tally|vllm|sglang|guidellm|aiperf|genai-perf|genai-bench|evalscope|llama-benchy|llama-bench|llama-server|ollama|mlperf|llmperf) ' "$dir/out")" = 14 ]
  check "$id: --as all --json" go "$tally" show $id --as all --json
  check "$id: tally counts what the store counts" [ "$(json "json_extract(j,'$.tools[0].ours_ok')")" = "$(sqlite3 tally.db "SELECT count(*) FROM request q JOIN trial t ON t.id=q.trial JOIN run r ON r.id=t.run JOIN experiment x ON x.id=r.experiment WHERE x.name='$id' AND q.role='measured' AND q.outcome='ok'")" ]
  check "$id: tally's TTFT is the stored one" [ "$(json "round(json_extract(j,'$.tools[0].ttft.mean'),6)")" = "$(sqlite3 tally.db "SELECT round(avg(json_extract(q.metrics,'$.ttft_ns'))/1e6,6) FROM request q JOIN trial t ON t.id=q.trial JOIN run r ON r.id=t.run JOIN experiment x ON x.id=r.experiment WHERE x.name='$id' AND q.role='measured'")" ]
  # every figure of every tool: the causes add up to the gap, to the last grain
  open=$(json "(SELECT count(*) FROM json_each(j,'$.tools') t, json_each(t.value) f WHERE f.type='object' AND json_extract(f.value,'$.gap_sum_grains') <> (SELECT coalesce(sum(json_extract(c.value,'$.sum_grains')),0) FROM json_each(f.value,'$.causes') c))")
  all=$(json "(SELECT count(*) FROM json_each(j,'$.tools') t, json_each(t.value) f WHERE f.type='object' AND json_extract(f.value,'$.gap_sum_grains') IS NOT NULL)")
  echo "     $all figures with a gap, $open of them do not add up"
  check "$id: causes add up" [ "$open" = 0 -a "$all" -ge 30 ]
done

go "$tally" show own --as llama-server --json
same=$(sqlite3 tally.db "SELECT abs(json_extract(j,'$.tools[0].each[0].rate2.value') / (1000.0*json_extract(q.counters,'$.counters.engine_predicted_n')/json_extract(q.counters,'$.counters.engine_predicted_ms')) - 1) < 1e-6 FROM (SELECT json(readfile('$dir/out')) AS j), request q WHERE q.id = json_extract(j,'$.tools[0].each[0].request')")
check "llama-server's rate before PR #26920 is n/predicted_ms" [ "$same" = 1 ]
one=$(sqlite3 tally.db "SELECT id FROM request WHERE role='measured' LIMIT 1")
check "one request" go "$tally" show chat --as vllm --request "$one"
check "says its snapshot" grep -q "017e9f4448" "$dir/out"
go "$tally" show chat --as vlm; code=$?
check "a wrong name is a usage error that helps" [ $code = 2 ]
check "did you mean" grep -q "did you mean vllm" "$dir/err"
go "$tally" show chat --as all --request zzz; code=$?
check "no such request" [ $code = 4 ]
go "$tally" show chat --cell x; code=$?
check "--cell without --as" [ $code = 2 ]
echo '{"writes": [[1]]}' >bad.json
go "$tally" show stream bad.json --as all; code=$?
check "a bad stream file names the write" grep -q 'bad.json: writes\[0\]' "$dir/err"
check "and exits with 2" [ $code = 2 ]

finish
