#!/bin/sh
# calibrate.sh TALLY SOURCE_DIR: the client against the null server: errors are small on a healthy way, each trap is found
# when the null server sets it, and what was measured is stored. No engine is needed.
tally=$1 source=$2
. "$(dirname "$0")/setup.sh"

go() { timeout 120 "$tally" "$@" >"$dir/out" 2>"$dir/err" </dev/null; }
fact() { sql "SELECT json_extract(s.facts,'$.points[0].$1') FROM run_state s JOIN run r ON r.id=s.run WHERE s.state='done' ORDER BY s.seq DESC LIMIT 1"; }
holds() { [ "$(sql "SELECT $1")" = 1 ]; }
found() { # NAME WORDS: this trap is found, and named with its load
  go calibrate --streams 4 --rate 100 --seconds 1 --null "$2" --json || return 1
  python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not any(f["name"]==sys.argv[2] and f["load"]=="4 x 100/s" for f in d["findings"]))' "$dir/out" "$1"
}

check "a load" go calibrate --streams 4 --rate 100 --seconds 2
check "every event was seen: 4 streams, 2 answers, 100 events" [ "$(fact events)" = 800 ]
check "each with its error, each answer with one of TTFT, every gap" [ "$(fact arrival.n),$(fact ttft.n),$(fact gap.n)" = 800,8,792 ]
check "a stamp is later than the write, by less than a token's time" holds "$(fact arrival.p50_ms) > 0 AND $(fact arrival.p50_ms) < 10"
check "gaps are right on average" holds "abs($(fact gap.bias_ms)) < 1"
check "all answers ran at once" [ "$(fact at_once)" = 4 ]
check "the client's cost is positive and below a core" holds "$(fact cpu_per_event_us) > 0 AND $(fact cpu_share) < 1"
check "its values are measured ones of this run" [ "$(sql "SELECT count(*) FROM value WHERE label='measured' AND name LIKE 'ruler.%' AND cell='1:4x100/s'")" = 11 ]
check "the clock is named" grep -q 'clock CLOCK_MONOTONIC' "$dir/out"
check "a sentence says what it means" grep -q 'At 4 streams 99 of 100 events are stamped at most' "$dir/out"
check "the run is listed" go list runs
check "as a calibration that is done" grep -qE 'calibrate .*done' "$dir/out"

check "joined writes make 40 ms steps" found 40ms-steps batch=4
check "and are joined reads" found coalesced-reads batch=4
check "buffered answers are no streams" found fake-streaming burst=1
check "Nagle splits events" found split-events nagle=1
check "a pool that is too small" found pool-cap max_conn=2
go calibrate --streams 4 --seconds 1 --json
check "and none of them where there is none" sh -c '! grep -qE "40ms-steps|split-events|fake-streaming|pool-cap" "$1"' - "$dir/out"

go calibrate --streams 4 --seconds 1 --null nonsense=1; code=$?
check "a wrong word for the null server is refused" [ $code = 2 ]
check "and named" grep -q "unknown word 'nonsense=1'" "$dir/err"
check "its run is stored as failed, with the reason" [ "$(sql "SELECT count(*) FROM run_state WHERE state='failed' AND reason LIKE '%nonsense%'")" = 1 ]
go calibrate --streams 4 --seconds 1 --endpoint http://127.0.0.1:9; code=$?
check "nobody at the endpoint" [ $code = 1 ]
"$tally" calibrate --streams 4 --seconds 60 >"$dir/out" 2>"$dir/err" </dev/null & pid=$!
sleep 2; kill -TERM $pid; wait $pid; code=$?
check "SIGTERM stops it" [ $code = 1 ]
check "and the run is interrupted" [ "$(sql "SELECT count(*) FROM run_state WHERE state='interrupted'")" = 1 ]
check "verify" go verify

finish
