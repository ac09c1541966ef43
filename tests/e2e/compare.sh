#!/bin/sh
# compare.sh TALLY SOURCE_DIR: verdicts on cells and runs that a real llama-server was measured for. Exit 77 (skipped) when
# there is no engine.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"
need_engine

# a model three times as large reads three times as much a token: slower is the right verdict on any machine
cat >experiments/measure/sizes.lua <<'L'
local tally = require "tally"
return tally.experiment { id = "sizes", map = "measure", day = 3, title = { zh = "大小", en = "sizes" }, question = { en = "q" },
  axes = { output = { 12, 24 }, model = tally.models { tally.synth { name = "small", size = "40MB", quant = "q4_0", answer = 40, context = 2048 },
    tally.synth { name = "large", size = "120MB", quant = "q4_0", answer = 40, context = 2048 } } },
  engine = { context = 256, slots = 1 },
  workload = tally.completion { prompt_tokens = 32, output_tokens = tally.axis "output", cache = "cold", requests = 2 },
  repeats = { min = 8, max = 8, until_ci = 0.5 } }
L
j() { jq -r "$1" "$dir/out"; }
is() { [ "$(j "$1")" = "$2" ]; }
exits() { want=$1; shift; go "$@"; [ $? = "$want" ]; }

check "a run of two models, eight rounds" go "$tally" run sizes
first=$(sql "SELECT id FROM run WHERE kind='experiment'")
check "the larger one is slower, and the exit code says so" exits 1 "$tally" compare 'sizes{model=small}' 'sizes{model=large}' --json
check "cells of the same output belong together" is '[.cells[] | [.a_label, .b_label] | map(split(" ") | map(select(startswith("output"))) | join("")) | .[0] == .[1]] | all and (length == 2)' true
check "every metric that is usual" is '[.cells[0].metrics[].metric] | join(" ")' "ttft tpot decode_rate prefill_rate e2e"
check "prefill says slower, both times" is '[.cells[].metrics[] | select(.metric == "prefill_rate") | .verdict] | unique | join(" ")' slower
check "rounds are what is compared" is '[.cells[].metrics[] | .n_a, .n_b, .a.n, .b.n] | unique | map(tostring) | join(" ")' "8 16"
check "in pairs" is '[.interleaved, .cells[].metrics[].paired] | all' true
# the printed medians against the stored rows, counted by another program
median() { sql "WITH v AS (SELECT json_extract(q.metrics,'\$.ttft_ns')/1e6 x, row_number() OVER (ORDER BY json_extract(q.metrics,'\$.ttft_ns')) i
  FROM request q JOIN trial t ON t.id=q.trial JOIN cell c ON c.run=t.run AND c.key=t.cell WHERE q.role='measured' AND json_extract(c.axes,'\$.model')='$1'
  AND json_extract(c.axes,'\$.output')=12) SELECT printf('%.4f', avg(x)) FROM v WHERE i IN (8,9)"; }
ours() { j ".cells[] | select(.$1_label | contains(\"output=12\")) | .metrics[] | select(.metric == \"ttft\") | .$1.median" | xargs printf '%.4f'; }
check "A's median is that of its rows" [ "$(ours a)" = "$(median small)" ]
check "and B's" [ "$(ours b)" = "$(median large)" ]

check "the other way round it is faster, which is no failure" exits 0 "$tally" compare 'sizes{model=large}' 'sizes{model=small}' --metric prefill_rate
check "in words" grep -q '8 *faster$' "$dir/out"
check "with its interval" grep -Eq '\+[0-9.]+ % \[\+[0-9.]+ … \+[0-9.]+\]' "$dir/out"

check "a second, shorter run" go "$tally" run sizes --set repeats.min=2 --set repeats.max=2
check "two runs" go "$tally" compare "$first" sizes --json --metric decode_rate
check "are matched cell by cell, unpaired" is '[(.cells | length), .interleaved, (.cells[0].metrics[0].paired), .cells[0].metrics[0].n_b] | map(tostring) | join(" ")' "4 false false 2"
check "two rounds give no verdict, whatever they show" is '[.cells[].metrics[] | .verdict, (.needs_n | tostring)] | unique | join(",")' "6,too noisy"
go "$tally" compare "sizes#$first" sizes --metric decode_rate
check "which is said" grep -q 'too noisy: needs n ≥ 6 rounds a side' "$dir/out"
check "and that they were not interleaved" grep -q 'two runs are not interleaved' "$dir/out"
check "one cell has no partner there" go "$tally" compare "$first" 'sizes{output=12}' --metric e2e
check "when A has only others" exits 4 "$tally" compare 'sizes{output=13}' 'sizes{output=12}'

check "nothing to compare with itself" exits 4 "$tally" compare sizes sizes
check "says how to choose" grep -q 'RUN{axis=one} RUN{axis=other}' "$dir/err"
check "two partners are an error" exits 2 "$tally" compare 'sizes{model=small}' 'sizes{output=12}'
check "an unknown metric is one too, with the nearest" exits 2 "$tally" compare 'sizes{model=small}' 'sizes{model=large}' --metric decode_rat
check "named" grep -q "did you mean 'decode_rate'" "$dir/err"
check "an unknown experiment" exits 4 "$tally" compare nothing sizes
check "a metric in the wrong place" exits 2 "$tally" compare 'sizes.ttft{model=small}' sizes
check "is told where it belongs" grep -q -- '--metric ttft' "$dir/err"

# ---- what the samples can bear
check "percentiles" go "$tally" show "$first" --percentiles
check "that 16 requests bear, with an interval" grep -Eq 'model=small output=12 +ttft ms +16 +[0-9.]+ \[[0-9.]+–[0-9.]+\] +needs n ≥ 36 +needs n ≥ 72 +needs n ≥ 368' "$dir/out"
go "$tally" show "$first" --json
check "the p50 is the eighth of sixteen" [ "$(j '.statistics[] | select(.metric == "ttft") | .quantiles[0].value' | head -n 1 | xargs printf '%.6f')" = "$(sql "SELECT printf('%.6f', x) FROM
  (SELECT json_extract(q.metrics,'\$.ttft_ns')/1e6 x, row_number() OVER (ORDER BY json_extract(q.metrics,'\$.ttft_ns')) i FROM request q JOIN trial t ON t.id=q.trial
  WHERE q.role='measured' AND t.run='$first' AND t.cell=(SELECT key FROM cell WHERE run='$first' AND position=0)) WHERE i=8")" ]
check "what cannot be given is null, with the number it needs" is '[.statistics[] | select(.metric == "ttft") | .quantiles[3] | .value, .n_needed] | unique | map(tostring) | join(" ")' "null 368"
check "and no value of that name is stored" [ "$(sql "SELECT count(*) FROM value WHERE name LIKE '%!_p9_' ESCAPE '!'")" = 0 ]
finish
