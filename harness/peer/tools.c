/* The tools: each a row of data. Where a definition was read, and when: README.md. */
#include "peer/peer_impl.h"

#define TIME(f, t, w, form) { .kind = K_TIME, .from = f, .to = t, .word = w, .formula = form }
#define PER(f, t, b, w, form) { .kind = K_PER_TOKEN, .from = f, .to = t, .by = b, .word = w, .formula = form }
#define RATE(f, t, b, w, form) { .kind = K_RATE, .from = f, .to = t, .by = b, .word = w, .formula = form }
#define NONE(w, reason) { .kind = K_NONE, .word = w, .why = reason }

#define NO_CLIENT "it measures no HTTP stream: there is no first token to see"
#define STRIP_G "comments: its splitter merges them with the records after them; the text is lost"
#define STRIP_I "CRLF line ends: the records of the last read are lost"
#define STRIP_N "a read ends at a space inside a text: the space is lost"
#define ZERO_GAPS "several chunks arrive in one read: its list of gaps holds zeros"
#define BIG_GAPS "chunks hold several tokens: its gaps are chunk gaps"

static const tl_peer tools[] = {
    { .name = "tally", .snapshot = "this program", .aggregate = "median of successful requests", .n = N_OURS,
      .def = { [TL_PEER_TTFT] = TIME(M_INTENDED, M_TEXT, "TTFT", "tF - t_intended"),
               [TL_PEER_TTFO] = TIME(M_INTENDED, M_ANSWER, "TTFO", "tA - t_intended"),
               [TL_PEER_E2E] = TIME(M_INTENDED, M_LAST, "E2E", "tL - t_intended"),
               [TL_PEER_TPOT] = PER(M_TEXT, M_LAST, BY_N1, "TPOT", "(tL - tF)/(n - 1)"),
               [TL_PEER_RATE] = RATE(M_TEXT, M_LAST, BY_N1, "decode rate", "(n - 1)/(tL - tF)"),
               [TL_PEER_PREFILL] = { .kind = K_PROMPT_OURS, .word = "prefill rate", .formula = "uncached prompt tokens / prompt time" } } },

    { .name = "vllm", .snapshot = "vllm bench serve, neuralmagic/vllm 017e9f4448, 2026-08-17",
      .aggregate = "mean, median, p99 over what it counts as success", .n = N_USAGE_TOKENIZER,
      .errors_ok = true, .nothing_ok = true, .cut_ok = true, .zero = true, .strips = true, .text_end = M_FINISH,
      .fails = { { C_NO_SPACE, "`data:` without a space" }, { C_EVENT_LINES, "`event:` lines" } },
      .notes = { { C_COMMENTS_FIRST, STRIP_G }, { C_CRLF, STRIP_I }, { C_SPACE_CUT, STRIP_N }, { C_SEVERAL, BIG_GAPS },
                 { C_COALESCED, ZERO_GAPS }, { C_ONE, "TPOT is missing, yet counts as 0 in its goodput" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_CHOICE, "TTFT", "tR - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_RECORD, "E2EL", "tU - t1"),
               [TL_PEER_TPOT] = PER(M_CHOICE, M_RECORD, BY_N1, "TPOT", "(E2EL - TTFT)/(n - 1)"),
               [TL_PEER_ITL] = PER(M_CHOICE, M_FINISH, BY_CHOICES1, "ITL", "mean gap of choice chunks"),
               [TL_PEER_RATE] = RATE(M_CHOICE, M_RECORD, BY_N1, "1000/TPOT", "(n - 1)/(tU - tR)") } },

    { .name = "sglang", .snapshot = "python/sglang/benchmark/serving.py, modal-projects/sglang 8905cbd42, 2026-07-20",
      .aggregate = "mean, median, p99 over what it counts as success", .n = N_USAGE_REQUESTED,
      .errors_ok = true, .nothing_ok = true, .cut_ok = true, .zero = true,
      .fails = { { C_COMMENTS, "comments: JSONDecodeError" }, { C_NO_SPACE, "`data:` without a space" },
                 { C_EVENT_LINES, "`event:` lines" }, { C_NOTHING, "an empty body" } },
      .notes = { { C_SEVERAL, BIG_GAPS }, { C_COALESCED, ZERO_GAPS }, { C_ALWAYS, "opens a new TCP connection inside its timer" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_TEXT, "TTFT", "tF - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_DONE, "E2E Latency", "tD - t1"),
               [TL_PEER_TPOT] = PER(M_TEXT, M_DONE, BY_N1, "TPOT", "(tD - tF)/(n - 1)"),
               [TL_PEER_RATE] = RATE(M_TEXT, M_DONE, BY_N1, "1000/TPOT", "(n - 1)/(tD - tF)") } },

    { .name = "guidellm", .snapshot = "GuideLLM src/guidellm, ee7a7745, 2026-08-07 (v0.7.x)",
      .aggregate = "mean, median and percentiles over completed requests", .n = N_USAGE_CHUNKS, .cut_ok = true, .nothing_ok = true, .zero = true,
      .notes = { { C_SEVERAL | C_COALESCED, "spreads a chunk's tokens evenly: stalls and bursts are invisible" },
                 { C_ALWAYS, "stamps with the wall clock: a time step of the system changes them" },
                 { C_ERROR, "what it makes of an error inside a stream was not read: taken as failed" },
                 { C_TRUNCATED | C_NOTHING, "what it makes of an answer without its end was not read: taken as success, a missing TTFT as 0" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_TEXT, "time_to_first_token_ms", "tF - t1"),
               [TL_PEER_TTFO] = TIME(M_START, M_ANSWER, "TTFOT", "tA - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_DONE, "request_latency", "tD - t1"),
               [TL_PEER_TPOT] = PER(M_START, M_LAST, BY_N, "time_per_output_token_ms", "(tL - t1)/n"),
               [TL_PEER_ITL] = PER(M_TEXT, M_LAST, BY_N1, "inter_token_latency_ms", "(tL - tF)/(n - 1)"),
               [TL_PEER_RATE] = RATE(M_TEXT, M_LAST, BY_N1, "1000/ITL", "(n - 1)/(tL - tF)"),
               [TL_PEER_RATE2] = RATE(M_START, M_LAST, BY_N, "1000/\"TPOT\"", "n/(tL - t1)") } },

    { .name = "aiperf", .snapshot = "NVIDIA AIPerf (Python) db4f6397, 2025-10-10; docs 0176f594",
      .aggregate = "avg, percentiles over valid records", .n = N_TOKENIZER,
      .notes = { { C_ERROR, "what it makes of an error inside a stream was not read: taken as failed" },
                 { C_SEVERAL, "the first chunk holds several tokens: tokens/s per user is too high (PR #1279 adds an option)" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_TEXT, "time_to_first_token", "tF - t1"),
               [TL_PEER_TTFO] = TIME(M_START, M_ANSWER, "time_to_first_output_token", "tA - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_LAST, "request_latency", "tL - t1"),
               [TL_PEER_TPOT] = PER(M_TEXT, M_LAST, BY_N1, "inter_token_latency", "(tL - tF)/(OSL - 1)"),
               [TL_PEER_RATE] = RATE(M_TEXT, M_LAST, BY_N1, "output_token_throughput_per_user", "1/ITL") } },

    { .name = "genai-perf", .snapshot = "triton-inference-server/perf_analyzer genai-perf, 263c5f6e, 2025-12-15",
      .aggregate = "avg, percentiles over valid records", .n = N_TOKENIZER_ANSWER,
      .notes = { { C_REASONING, "thinking is not parsed (#433)" }, { C_ALWAYS, "throughput counts skipped empty requests" },
                 { C_COALESCED, "merges chunks that arrive together" },
                 { C_ERROR, "what it makes of an error inside a stream was not read: taken as failed" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_ANSWER, "Time To First Token", "tA - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_LAST, "Request Latency", "tL - t1"),
               [TL_PEER_TPOT] = PER(M_ANSWER, M_LAST, BY_N1, "Inter Token Latency", "(tL - tA)/(OSL - 1)"),
               [TL_PEER_RATE] = RATE(M_ANSWER, M_LAST, BY_N1, "Output Token Throughput Per User", "1/ITL") } },

    { .name = "genai-bench", .snapshot = "sgl-project/genai-bench 7fd04d8, 2026-07-22",
      .aggregate = "mean and percentiles over successes, after its filter", .n = N_USAGE_TOKENIZER, .nothing_ok = true, .cut_ok = true, .zero = true,
      .fails = { { C_ERROR, "an error inside the stream" }, { C_NO_TEXT, "raises when there is no token" } },
      .notes = { { C_COALESCED, "requests whose tokens come within 1 ms are filtered out silently" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_TEXT, "TTFT", "tF - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_RECORD, "E2E Latency", "tU - t1"),
               [TL_PEER_TPOT] = PER(M_TEXT, M_RECORD, BY_N1, "TPOT", "(tU - tF)/(n - 1)"),
               [TL_PEER_RATE] = RATE(M_TEXT, M_RECORD, BY_N1, "output inference speed", "1/TPOT") } },

    { .name = "evalscope", .snapshot = "evalscope perf, fde259d2, 2026-08-22",
      .aggregate = "mean and percentiles over what it counts as success", .n = N_USAGE_ONLY,
      .errors_ok = true, .nothing_ok = true, .cut_ok = true, .zero = true,
      .notes = { { C_SEVERAL, BIG_GAPS }, { C_COALESCED, ZERO_GAPS } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_CHOICE, "TTFT", "tR - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_RECORD, "Latency", "tU - t1"),
               [TL_PEER_TPOT] = PER(M_CHOICE, M_RECORD, BY_N1, "TPOT", "(Latency - TTFT)/(n - 1)"),
               [TL_PEER_RATE] = RATE(M_CHOICE, M_RECORD, BY_N1, "1000/TPOT", "(n - 1)/(tU - tR)") } },

    { .name = "llama-benchy", .snapshot = "eugr/llama-benchy v0.3.0, ae09cab, 2026-02-07",
      .aggregate = "mean and standard deviation over runs", .n = N_CHUNKS, .errors_ok = true, .nothing_ok = true, .cut_ok = true,
      .fails = { { C_USAGE_NULL, "`\"usage\":null`: TypeError, NoneType" } },
      .notes = { { C_ALWAYS, "reports TTFR (first choice) apart; takes a ping off it for its prompt speed (here: 0)" },
                 { C_SEVERAL, "chunks hold several tokens: its tg counts chunks" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_TEXT, "e2e_ttft", "tF - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_DONE, "total", "tD - t1"),
               [TL_PEER_TPOT] = PER(M_TEXT, M_LAST, BY_N1, "1000/tg", "(tL - tF)/(c - 1)"),
               [TL_PEER_RATE] = RATE(M_TEXT, M_LAST, BY_N1, "tg", "(c - 1)/(tL - tF)"),
               [TL_PEER_PREFILL] = { .kind = K_PROMPT_CLIENT, .from = M_START, .to = M_CHOICE, .word = "pp", .formula = "prompt tokens/(TTFR - ping)" } } },

    { .name = "llama-bench", .snapshot = "llama.cpp llama-bench, ngxson/llama.cpp 3f545becc, 2026-08-23",
      .aggregate = "mean of the rates of its repeats", .n = N_ENGINE, .engine = true,
      .notes = { { C_ALWAYS, "no sampling, no tokenizer, no HTTP, random ids: the server's time holds them, so its own tg is at least this" } },
      .def = { [TL_PEER_TTFT] = NONE("TTFT", NO_CLIENT), [TL_PEER_E2E] = NONE("E2E", NO_CLIENT),
               [TL_PEER_RATE] = { .kind = K_ENGINE, .by = BY_N1, .word = "tg (at least)", .formula = "n/t of n decode calls; the server's time holds n - 1" },
               [TL_PEER_PREFILL] = { .kind = K_PROMPT, .word = "pp (at least)", .formula = "n/t" } } },

    { .name = "llama-server", .snapshot = "llama.cpp `timings`, ngxson/llama.cpp 3f545becc, 2026-08-23; PR #26920 is in b10424, not in b10400",
      .aggregate = "per request; /metrics: totals", .n = N_ENGINE, .engine = true,
      .def = { [TL_PEER_TTFT] = NONE("TTFT", "timings know the prompt's time alone"),
               [TL_PEER_E2E] = NONE("E2E", "timings know the engine's time alone"),
               [TL_PEER_RATE] = { .kind = K_ENGINE, .by = BY_N1, .word = "predicted_per_second since PR #26920", .formula = "(n - 1)/predicted_ms" },
               [TL_PEER_RATE2] = { .kind = K_ENGINE, .by = BY_N, .word = "predicted_per_second before PR #26920", .formula = "n/predicted_ms" },
               [TL_PEER_PREFILL] = { .kind = K_PROMPT, .word = "prompt_per_second", .formula = "uncached prompt tokens/prompt_ms" } } },

    { .name = "ollama", .snapshot = "ollama run --verbose, ollama/ollama api/types.go Metrics.Summary, 00a4cb26",
      .aggregate = "one request", .n = N_ENGINE, .engine = true,
      .notes = { { C_ALWAYS, "on another engine: the same arithmetic on that engine's timings" } },
      .def = { [TL_PEER_TTFT] = NONE("TTFT", "it prints durations of the engine, no time to the first token"),
               [TL_PEER_E2E] = NONE("total duration", "the engine's own time; not rebuilt from a client's stamps"),
               [TL_PEER_RATE] = { .kind = K_ENGINE, .by = BY_N, .word = "eval rate", .formula = "eval_count/eval_duration" },
               [TL_PEER_PREFILL] = { .kind = K_PROMPT_ALL, .word = "prompt eval rate", .formula = "prompt_eval_count/prompt_eval_duration" } } },

    { .name = "mlperf", .snapshot = "MLPerf LoadGen, mlcommons/inference b66003e1, 2026-08-20",
      .aggregate = "percentiles over all samples", .n = N_OURS,
      .notes = { { C_ONE, "one token: its check sets n_tokens to 0, then divides by -1" },
                 { C_ALWAYS, "n is what the submitter says; complete is taken as the last token" } },
      .def = { [TL_PEER_TTFT] = TIME(M_INTENDED, M_TEXT, "first token latency", "FirstTokenComplete - t0"),
               [TL_PEER_E2E] = TIME(M_INTENDED, M_LAST, "latency", "complete - t0"),
               [TL_PEER_TPOT] = PER(M_TEXT, M_LAST, BY_ML, "time per output token", "(latency - TTFT)/(n_tokens - 1), integer ns"),
               [TL_PEER_RATE] = RATE(M_TEXT, M_LAST, BY_N1, "1/TPOT", "(n - 1)/(tL - tF)") } },

    { .name = "llmperf", .snapshot = "ray-project/llmperf f1d6bed, 2024-12-09",
      .aggregate = "mean and quantiles over requests without error", .n = N_TOKENIZER_ANSWER, .nothing_ok = true, .cut_ok = true, .zero = true,
      .fails = { { C_EMPTY_CHOICES, "`choices:[]`: IndexError" }, { C_ERROR, "an error inside the stream" }, { C_COMMENTS, "comments: JSONDecodeError" },
                 { C_NO_SPACE, "`data:` without a space" }, { C_EVENT_LINES, "`event:` lines" } },
      .notes = { { C_REASONING, "thinking is not seen: TTFT at the first answer text, 0 if none comes" } },
      .def = { [TL_PEER_TTFT] = TIME(M_START, M_ANSWER, "ttft_s", "tA - t1"),
               [TL_PEER_E2E] = TIME(M_START, M_DONE, "end_to_end_latency_s", "tD - t1"),
               [TL_PEER_TPOT] = PER(M_START, M_LAST, BY_CHOICES, "inter_token_latency_s", "(TTFT + sum of gaps)/K, K = all choice chunks"),
               [TL_PEER_RATE] = RATE(M_START, M_DONE, BY_N, "request_output_throughput_token_per_s", "n/E2E") } },
};

size_t tl_peer_count(void) { return TL_COUNT(tools); }
const tl_peer *tl_peer_at(size_t i) { return i < TL_COUNT(tools) ? &tools[i] : NULL; }

const tl_peer *tl_peer_find(const char *name)
{
    for (size_t i = 0; i < TL_COUNT(tools); i++)
        if (tl_str_eq(tools[i].name, name)) return &tools[i];
    return NULL;
}

const char *tl_peer_name(const tl_peer *p) { return p->name; }
const char *tl_peer_snapshot(const tl_peer *p) { return p->snapshot; }
const char *tl_peer_aggregate(const tl_peer *p) { return p->aggregate; }
bool tl_peer_is_client(const tl_peer *p) { return !p->engine; }
