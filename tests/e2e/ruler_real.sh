#!/bin/sh
# ruler_real.sh TALLY SOURCE_DIR: a client that is stopped in the middle of an open loop makes its run INVALID, which no
# report takes; a client that is left alone does not. On the real llama-server; exit 77 (skipped) when there is none.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"
need_engine
mkdir -p reports/open

go() { timeout 120 "$tally" "$@" >"$dir/out" 2>"$dir/err" </dev/null; }

cat >experiments/measure/open.lua <<'L'
local tally = require "tally"
return tally.experiment {
  id = "open", map = "measure", day = 10,
  title = { zh = "開", en = "open" }, question = { en = "q" },
  axes = { model = tally.models { tally.synth { name = "a", size = "40MB", quant = "q4_0", answer = 40, context = 2048 } } },
  engine = { context = 512, slots = 4 },
  workload = tally.completion { prompt_tokens = 64, output_tokens = 4, requests = 40,
    schedule = tally.open { rate = 8, arrival = "constant", ruler_share = 0.05 } },
  repeats = { min = 2, max = 2, until_ci = 0.5 }, probe = { bandwidth = false },
}
L
printf -- '---\ntitle: r\nlang: zh-Hant\nexperiment: open\n---\n\n`= open.ttft{model=a}`\n' >reports/open/report.md

# ---- the client is stopped for half a second while requests are due
"$tally" run open >"$dir/out" 2>"$dir/err" </dev/null & pid=$!
n=0
while [ "$n" -lt 600 ] && [ "$(sql "SELECT count(*) FROM request WHERE role='warmup'" 2>/dev/null || echo 0)" -lt 1 ]; do sleep 0.1; n=$((n + 1)); done
sleep 2; kill -STOP $pid; sleep 0.5; kill -CONT $pid; wait $pid; code=$?
check "the run is refused" [ $code = 3 ]
check "in one sentence with numbers and a remedy" grep -qE 'ruler was too short: requests were sent up to [0-9.]+ ms \(p99\).*over 5 % of the median TTFT of [0-9.]+ ms.*core of its own' "$dir/err"
check "its last state is invalid, with the reason" [ "$(sql "SELECT state || (reason LIKE '%ruler was too short%') FROM run_state ORDER BY seq DESC LIMIT 1")" = invalid1 ]
check "it ended at the first such block" [ "$(sql "SELECT count(*) FROM trial")" = 1 ]
check "its requests are kept" [ "$(sql "SELECT count(*) FROM request WHERE role='measured' AND outcome='ok'")" = 40 ]
check "its rates of success as well" [ "$(sql "SELECT json_extract(facts,'$.window.ok') FROM trial_end")" = 40 ]
check "no median is made of them" [ "$(sql "SELECT count(*) FROM value WHERE statistic='median'")" = 0 ]
run=$(sql "SELECT id FROM run")
check "show by the experiment's name" go show open
check "says INVALID" grep -qE "^run $run  open  INVALID" "$dir/out"
check "and why" grep -q 'invalid: .*ruler was too short' "$dir/out"
check "and that nobody calibrated" grep -q 'ruler: not calibrated: run `tally calibrate`' "$dir/out"
check "list" go list runs
check "shows it with the reason" grep -qE 'invalid .*ruler was too short' "$dir/out"
go report build open; code=$?
check "a report refuses it" [ $code -ne 0 ]
check "and says why" grep -qE "run $run is INVALID and publishes no numbers: .*ruler was too short" "$dir/err"
sed "s/open\.ttft/open#$run.ttft/" reports/open/report.md >"$dir/r" && cp "$dir/r" reports/open/report.md
go report build open; code=$?
check "also where it is named by its id" grep -q "is INVALID and publishes no numbers" "$dir/err"
go run open --resume "$run"; code=$?
check "it cannot be resumed" [ $code -ne 0 ]
check "verify" go verify

# ---- a calibration, and a run that carries it
check "calibrate" go calibrate --streams 4 --seconds 1
sed -i 's/ruler_share = 0.05/ruler_share = 1/' experiments/measure/open.lua
check "a client that is left alone" go run open
check "is done" [ "$(sql "SELECT s.state FROM run_state s JOIN run r ON r.id=s.run WHERE r.kind='experiment' ORDER BY s.seq DESC LIMIT 1")" = done ]
check "show" go show open
check "names the ruler" grep -qE 'ruler: ±[0-9.]+ ms \(p99\) at 4 streams, calibrated [-0-9T:]+Z' "$dir/out"
check "the run carries the calibration's id" [ "$(sql "SELECT json_extract(facts,'$.calibration.run') FROM run ORDER BY seq DESC LIMIT 1")" = "$(sql "SELECT id FROM run WHERE kind='calibrate'")" ]

finish
