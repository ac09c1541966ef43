#!/bin/sh
# run_real.sh TALLY SOURCE_DIR: the whole flow on the real llama-server: run, report, re-run on the same machine, re-run
# with another model, kill -9 and resume, Ctrl-C, a server that is killed. Exit 77 (skipped) when there is no engine.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"
need_engine
mkdir -p reports/tiny

servers() { pgrep -f 'models/[ab]-[0-9a-f]*[.]gguf' | wc -l; }

cat >experiments/measure/tiny.lua <<'L'
local tally = require "tally"
return tally.experiment {
  id = "tiny", map = "measure", day = 10,
  title = { zh = "小", en = "tiny" }, question = { en = "q" },
  axes = { model = tally.models {
    tally.synth { name = "a", size = "40MB", quant = "q4_0", answer = 40, context = 2048 },
    tally.synth { name = "b", size = "40MB", quant = "q8_0", answer = 40, context = 2048 } } },
  engine = { context = 256, slots = 1 },
  workload = tally.completion { prompt_tokens = 16, output_tokens = 24, cache = "cold" },
  repeats = { min = 5, max = 5, until_ci = 0.5 }, probe = { milliseconds = 40 },
  predict = function(c)
    return tally.calc.decode_rate { bandwidth = c.machine.bandwidth, bytes_per_token = tally.calc.bytes_per_token {
      weights_read = c.model.weights_read, kv_per_position = c.model.kv_per_position, positions = c.positions } }
  end,
  figures = { tally.figure.scatter { id = "law", x = "bytes_per_token", y = "decode_rate", line = "predicted", log = "xy",
    title = { zh = "速度", en = "speed" } } },
}
L
cat >reports/tiny/report.md <<'M'
---
title: 小報告
lang: zh-Hant
experiment: tiny
---

**「量」**：`= tiny.decode_rate{model=a}`，頻寬 `= tiny.bandwidth`。

```figure id=fig-1
{ run = "tiny", figure = "law" }
```

```table id=tab-1 caption="表"
{ run = "tiny", columns = { "bytes_per_token", "decode_rate", "ratio" } }
```
M

# ---- a run, and what is stored of it
check "run" go "$tally" run tiny
check "every request is stored as ok" [ "$(sql "SELECT count(*) FROM request WHERE outcome='ok' AND role='measured'")" = 10 ]
check "exact counts: 24 tokens each" [ "$(sql "SELECT count(*) FROM request WHERE role='measured' AND json_extract(metrics,'$.n')=24")" = 10 ]
check "exact prompts, nothing cached" [ "$(sql "SELECT count(*) FROM request WHERE role='measured' AND json_extract(metrics,'$.cached_n')=0 AND json_extract(metrics,'$.prompt_n')=16")" = 10 ]
check "finish reason length" [ "$(sql "SELECT count(*) FROM request WHERE role='measured' AND finish_reason IN ('length','limit')")" = 10 ]
check "one connection each" [ "$(sql "SELECT count(*) FROM request WHERE role='measured' AND connects=1")" = 10 ]
check "predictions were stored before the first request" [ "$(sql "SELECT count(*) FROM value WHERE name='predicted' AND label='derived'")" = 2 ]
check "the engine's whole log is kept" [ "$(sql "SELECT count(*) FROM artifact WHERE name LIKE 'engine-%'")" -ge 2 ]
check "verify" go "$tally" verify
check "no process left" [ "$(servers)" = 0 ]

# ---- report and re-run
check "report" go "$tally" report build tiny
check "html, markdown, figures" [ -s build/reports/tiny/report.html -a -s build/reports/tiny/report.md -a -s build/reports/tiny/figures/fig-1.svg ]
cp -r build/reports/tiny/report.html "$dir/report.html"
mkdir "$dir/reader" && cp -r machines experiments "$dir/reader/" && cd "$dir/reader" || exit 1
check "rerun on the same machine from a clean folder" go "$tally" rerun "$dir/report.html#fig-1" --yes
check "verdict is equivalent or explained" grep -qE "verdict: (equivalent|explained|exact)" "$dir/out"
# another quantisation behind the same name: a different file, which the digest tells
other=$(ls "$cache"/models/b-*.gguf | head -n 1)
go "$tally" rerun "$dir/report.html#fig-1" --yes --only model=a --model a="$other"; code=$?
check "rerun with another model is different" [ $code = 1 ]
check "and names the model digest" grep -q "digest" "$dir/out"
cd "$dir/p" || exit 1

# ---- kill -9 in the middle, then resume
rm -f tally.db tally.db-*
"$tally" run tiny --set max=12 --set min=12 >"$dir/out" 2>"$dir/err" </dev/null & pid=$!
n=0
while [ "$n" -lt 600 ] && [ "$(sqlite3 tally.db "SELECT count(*) FROM request WHERE role='measured'" 2>/dev/null || echo 0)" -lt 4 ]; do sleep 0.1; n=$((n + 1)); done
kill -9 $pid; wait $pid 2>/dev/null
before=$(sql "SELECT count(*) FROM request WHERE role='measured'")
sleep 1
check "kill -9 leaves no process" [ "$(servers)" = 0 ]
run=$(sql "SELECT id FROM run WHERE kind='experiment'")
check "resume" go "$tally" run tiny --set max=12 --set min=12 --resume "$run"
after=$(sql "SELECT count(*) FROM request WHERE role='measured'")
echo "     requests before kill -9: $before, after resume: $after"
check "nothing finished was lost, all rounds are there" [ "$before" -ge 4 -a "$after" -ge 24 ]
check "one run, resumed and done" [ "$(sql "SELECT group_concat(state) FROM (SELECT state FROM run_state WHERE run='$run' ORDER BY rowid)" 2>/dev/null)" = "started,resumed,done" ]
check "the chain is whole" go "$tally" verify

# ---- SIGTERM (a shell lets background programs ignore SIGINT; both take the same way)
"$tally" run tiny --set max=40 --set min=40 >"$dir/out" 2>"$dir/err" </dev/null & pid=$!
sleep 4; kill -TERM $pid; wait $pid; code=$?
check "SIGTERM ends with 1 and says how to go on" [ $code = 1 ] 
check "and names --resume" grep -q -- "--resume" "$dir/err"
check "no process left after SIGTERM" [ "$(servers)" = 0 ]

# ---- the server is killed in the middle
"$tally" run tiny --set max=40 --set min=40 >"$dir/out" 2>"$dir/err" </dev/null & pid=$!
n=0
while [ "$n" -lt 100 ] && [ -z "$(pgrep -f 'models/[ab]-[0-9a-f]*[.]gguf')" ]; do sleep 0.1; n=$((n + 1)); done
sleep 2; pkill -9 -f 'models/[ab]-[0-9a-f]*[.]gguf'; wait $pid; code=$?
check "a killed server fails the run" [ $code = 1 ]
check "the reason is stored" [ -n "$(sql "SELECT reason FROM run_state WHERE state='failed'")" ]

# ---- schedules: requests come by themselves; one rate is far beyond what the server can do
rm -f tally.db tally.db-*
sed -e 's/id = "tiny"/id = "open"/' -e 's/axes = {/axes = { rate = { 4, 2000 },/' -e '/name = "b"/d' -e 's/context = 2048 },$/context = 2048 } } },/' \
    -e 's/cache = "cold" }/requests = 16, schedule = tally.open { rate = tally.axis "rate", max_in_flight = 6, drain_s = 20, ruler_share = 0.5 } }/' \
    -e 's/min = 5, max = 5/min = 2, max = 2/' experiments/measure/tiny.lua >experiments/measure/open.lua
check "an open loop runs" go "$tally" run open
check "the block of the slow rate is whole" [ "$(sql "SELECT count(*) FROM trial_end WHERE json_extract(facts,'$.window.ok')=16")" = 2 ]
check "the overloaded cell is aborted once, not repeated" [ "$(sql "SELECT count(*) FROM trial_end WHERE json_extract(facts,'$.aborted.rule')='queue-growth'")" = 1 ]
check "and has no median" [ "$(sql "SELECT count(*) FROM value WHERE name='decode_rate'")" = 1 ]
check "requests were sent on time" [ "$(sql "SELECT max(json_extract(facts,'$.window.lateness.p50_ms'))<20 FROM trial_end")" = 1 ]
check "show" go "$tally" show open
check "show says why there is no median" grep -q 'rate=2000, round 1: aborted: .*limit 6' "$dir/out"
sed 's/max_in_flight = 6/workers = 2/' experiments/measure/open.lua >experiments/measure/workers.lua
sed -i 's/id = "open"/id = "workers"/' experiments/measure/workers.lua
go "$tally" run workers; code=$?
check "what a schedule cannot do is refused, not ignored" [ $code = 2 ]
check "by name" grep -q 'workload.schedule.workers' "$dir/err"

finish
