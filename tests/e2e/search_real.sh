#!/bin/sh
# search_real.sh TALLY SOURCE_DIR: the largest load that meets an SLO, searched twice on the real llama-server, and windows
# that leave the ramp out. Exit 77 (skipped) when there is no engine.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"
need_engine
mkdir -p experiments/capacity

# experiment ID WORKLOAD-REST: one small model behind one slot, so that users wait for each other
experiment() {
  cat >"experiments/capacity/$1.lua" <<L
local tally = require "tally"
return tally.experiment { id = "$1", map = "capacity", day = 17, title = { zh = "幾人", en = "users" }, question = { en = "q" },
  axes = { model = tally.models { tally.synth { name = "a", size = "40MB", quant = "q4_0", answer = 40, context = 2048 } } },
  engine = { context = 256, slots = 1 },
  workload = tally.completion { prompt_tokens = 32, output_tokens = 16, cache = "cold", $2 },
  repeats = { min = $3, max = $3, until_ci = 0.5 } }
L
}

# ---- two searches over users, and each bounded by loads that were really shown
experiment users 'schedule = tally.search { over = "users", from = 1, to = 64, slo = "ttft<500ms@90%" }' 2
check "a search runs" go "$tally" run users
check "twice, each with an answer" [ "$(sql "SELECT count(*) FROM trial_end WHERE json_extract(facts,'\$.search.answer.missed_at')>json_extract(facts,'\$.search.answer.value')")" = 2 ]
# an interval covers what chance did to one search; what the machine did in between is the difference of two
check "the two agree within a fifth, or one user" [ "$(sql "SELECT max(v)-min(v)<=max(1,0.2*max(v)) FROM (SELECT json_extract(facts,'\$.search.answer.value') v FROM trial_end)")" = 1 ]
check "and the value's interval holds both" [ "$(sql "SELECT min(json_extract(facts,'\$.search.answer.value'))>=(SELECT lo FROM value WHERE name='users_at_slo')
  AND max(json_extract(facts,'\$.search.answer.value'))<=(SELECT hi FROM value WHERE name='users_at_slo') FROM trial_end")" = 1 ]
check "no load is called met without its interval above the share" [ "$(sql "SELECT count(*) FROM trial_end, json_each(facts,'\$.search.steps') s
  WHERE json_extract(s.value,'\$.verdict')='met' AND json_extract(s.value,'\$.terms[0].lo')<0.9")" = 0 ]
check "nor missed with it" [ "$(sql "SELECT count(*) FROM trial_end, json_each(facts,'\$.search.steps') s
  WHERE json_extract(s.value,'\$.verdict')='missed' AND json_extract(s.value,'\$.aborted') IS NULL AND json_extract(s.value,'\$.terms[0].hi')>=0.9")" = 0 ]
# what was counted is what is stored: the judged requests are the measured rows, and their TTFT gives the same count
check "judged requests are the measured ones" [ "$(sql "SELECT sum(json_extract(s.value,'\$.requests')) FROM trial_end, json_each(facts,'\$.search.steps') s")" = \
  "$(sql "SELECT count(*) FROM request WHERE role='measured'")" ]
check "and as many were in time as the requests say" [ "$(sql "SELECT sum(json_extract(s.value,'\$.terms[0].good')) FROM trial_end, json_each(facts,'\$.search.steps') s")" = \
  "$(sql "SELECT count(*) FROM request WHERE role='measured' AND json_extract(metrics,'\$.ttft_ns')<=500000000")" ]
check "one value with its interval" [ "$(sql "SELECT count(*) FROM value WHERE name='users_at_slo' AND lo<=number AND number<=hi AND label='measured'")" = 1 ]
check "show" go "$tally" show users
check "says it in a sentence" grep -Eq 'round 1: [0-9]+ users?( \(95 % interval .*\))? gets? ttft<500ms@90%; [0-9]+ users? miss(es)? it: [0-9]+ of [0-9]+ requests' "$dir/out"

# ---- a promise that nothing keeps
experiment never 'schedule = tally.search { over = "users", from = 1, to = 4, slo = "ttft<0.001ms@90%" }' 1
check "a hopeless promise is an answer too" go "$tally" run never
go "$tally" show never
check "and says so" grep -q 'no load tried gets ttft<0.001ms@90%; 1 user misses it: 0 of ' "$dir/out"

# ---- a rate
experiment rate 'schedule = tally.search { over = "rate", from = 4, to = 1000, resolution = 0.4, ruler_share = 0.5, slo = "ttft<500ms@80%", max_in_flight = 40, drain_s = 20 }' 1
check "a search over rates" go "$tally" run rate
check "has its value in requests per second" [ "$(sql "SELECT unit FROM value WHERE name='rate_at_slo'")" = req/s ]

# ---- a window without the ramp
experiment ramp 'requests = 12, concurrency = 2, schedule = tally.closed { ramp_s = 0.4, settle_s = 0.2, slo = "ttft<2s@95%" }' 1
check "a ramp runs" go "$tally" run ramp
w() { sql "SELECT json_extract(facts,'\$.window.$1') FROM trial_end WHERE json_extract(facts,'\$.window.before') > 0"; }
check "what was sent in the ramp is no measured request" [ "$(w before)" -gt 0 ]
check "the rest is" [ "$(w before)" -lt 24 ]
check "its rule is stated" [ "$(w rule)" = "from the end of the ramp to the last intended start" ]
check "goodput stands with it" [ -n "$(w goodput_share)" ]
check "and is a value, as is the throughput" [ "$(sql "SELECT group_concat(name, ' ') FROM (SELECT DISTINCT name FROM value WHERE name IN ('throughput','request_rate','goodput_share') ORDER BY name)")" = "goodput_share request_rate throughput" ]

# ---- refused, with the remedy
experiment few 'requests = 5, schedule = tally.search { over = "users", from = 1, to = 4, slo = "ttft<1s@95%" }' 1
go "$tally" run few; code=$?
check "too few requests to show anything are refused" [ $code = 2 ]
check "with the number that is needed" grep -q 'give it 99 or more' "$dir/err"
experiment late 'requests = 3, schedule = tally.closed { settle_s = 60 }' 1
go "$tally" run late
check "a window without any request is an error, not an empty answer" grep -q 'no request is left in the window' "$dir/err"
experiment half 'schedule = tally.search { over = "users", from = 1.5, to = 4, slo = "ttft<1s@95%" }' 1
go "$tally" run half; code=$?
check "half a user is refused" [ $code = 2 ]
experiment naked 'schedule = tally.search { over = "users", from = 1, to = 4, slo = "ttft<1" }' 1
go "$tally" run naked; code=$?
check "a promise without unit is refused" [ $code = 2 ]

finish
