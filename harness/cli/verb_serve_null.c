/* tally serve-null: the null server's process. */
#include "cli/cli.h"
#include "sim/sim.h"

static const tl_option options[] = {
    {.name = "port", .letter = 'p', .arg = "N", .help = "port on 127.0.0.1; 0 = any free one", .otherwise = "0"},
    {.name = "spin-us",
     .arg = "N",
     .help = "wait awake for the last N microseconds before an event while at most 8 answers run",
     .otherwise = "0"},
    {0}};

static const tl_example examples[] = {
    {"tally serve-null --port 8099", "serve until Ctrl-C; the first line says where"},
    {"tally serve-null --spin-us 200", "sharper times for a few streams, at the cost of a processor"},
    {0}};

static const tl_exit exits[] = {{0, "stopped by a signal"},
                                {1, "the port is taken, or the system refused a socket"},
                                {2, "the command line is wrong"},
                                {0, NULL}};

static tl_status run(tl_cli *c, tl_err *e) {
    int64_t port, spin;
    tl_status st = tl_cli_int(&port, c, "port", 0, 0, 65535, e);
    if (st == TL_OK) st = tl_cli_int(&spin, c, "spin-us", 0, 0, 10000, e);
    if (st != TL_OK) return st;
    return tl_null_serve((uint16_t)port, (uint64_t)spin, c->out, e);
}

const tl_verb tl_verb_serve_null = {
    .name = "serve-null",
    .summary = "serve answers of known timing, to measure a client's own error",
    .usage = "",
    .about =
        "A server without a model. It answers every POST with an OpenAI chat stream on the schedule that the "
        "request's header X-Tally-Null asks for, and writes into each event the time at which it is sent. A client's "
        "error is then a subtraction. Words of the header: first_us, gap_us, phase_us, events, bytes, batch (events "
        "in one write), burst=1 (all at the end), nagle=1 (two writes an event, without TCP_NODELAY), max_conn "
        "(answers at once). For example: curl -N -H "
        "'X-Tally-Null: gap_us=10000 events=20' -d '{}' URL/v1/chat/completions.\n\nTally starts it by itself where it needs it; by hand it serves to measure another "
        "client.",
    .options = options,
    .examples = examples,
    .exits = exits,
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
