/* Private to peer: a tool as data, and one request as the tools' definitions see it. */
#ifndef TL_PEER_IMPL_H
#define TL_PEER_IMPL_H

#include "peer/peer.h"

/* Moments of a request. From M_LAST on, in the order in which a stream ends: a tail is walked step by step. */
typedef enum peer_mark {
    M_NONE,
    M_INTENDED,
    M_START,  /* the client began to work on it: post() */
    M_CHOICE, /* first record with a choice, with or without text */
    M_TEXT,   /* first thinking, answer or tool text */
    M_ANSWER, /* first answer or tool text */
    M_KEPT,   /* last choice of the reads before the last one */
    M_LAST,   /* last text */
    M_FINISH, /* last record with a choice */
    M_RECORD, /* last record that is not [DONE] */
    M_DONE,   /* [DONE], else the end of the response */
    M_COUNT
} peer_mark;

typedef enum peer_kind {
    K_NONE,
    K_TIME,       /* to - from */
    K_PER_TOKEN,  /* (to - from)/count */
    K_RATE,       /* count/(to - from) */
    K_ENGINE,     /* count/(the engine's generation time) */
    K_PROMPT,     /* uncached prompt tokens/(engine's prompt time) */
    K_PROMPT_ALL, /* prompt tokens, cached ones too/(engine's prompt time) */
    K_PROMPT_CLIENT, /* prompt tokens, cached ones too/(to - from) */
    K_PROMPT_OURS
} peer_kind;

typedef enum peer_n {
    N_OURS,
    N_USAGE_TOKENIZER, /* usage of a record without choices, else its tokenizer */
    N_USAGE_ONLY,
    N_USAGE_REQUESTED, /* usage, else what was asked for */
    N_USAGE_CHUNKS,
    N_TOKENIZER,
    N_TOKENIZER_ANSWER, /* its tokenizer on the answer; thinking is not in it */
    N_CHUNKS,
    N_ENGINE,
} peer_n;

/* Divisors. */
typedef enum peer_by { BY_N1, BY_N, BY_CHOICES1, BY_CHOICES, BY_ML } peer_by;

/* Habits of a stream on which tools differ. */
#define C_EMPTY_CHOICES (1u << 0)
#define C_COMMENTS (1u << 1)
#define C_NO_SPACE (1u << 2)
#define C_EVENT_LINES (1u << 3)
#define C_USAGE_NULL (1u << 4)
#define C_ERROR (1u << 5)
#define C_NO_TEXT (1u << 6)   /* finished, no token */
#define C_NOTHING (1u << 7)   /* no record and no [DONE] */
#define C_CRLF (1u << 8)
#define C_SPACE_CUT (1u << 9) /* a read begins or ends with a space inside a record */
#define C_COALESCED (1u << 10)
#define C_SEVERAL (1u << 11)  /* chunks hold several tokens */
#define C_ONE (1u << 12)      /* at most one token */
#define C_REASONING (1u << 13)
#define C_UNRECORDED (1u << 14) /* a stored request from before these habits were recorded */
#define C_NATIVE (1u << 15)     /* not an OpenAI dialect */
#define C_ALWAYS (1u << 16)
#define C_TRUNCATED (1u << 17)
#define C_COMMENTS_FIRST (1u << 18) /* before the first data */
#define C_COMMENTS_LATE (1u << 19)  /* only after it */

typedef struct peer_rule {
    unsigned when; /* any of C_* */
    const char *what;
} peer_rule;

typedef struct peer_def {
    peer_kind kind;
    peer_mark from, to;
    peer_by by;
    const char *word, *formula;
    const char *why; /* kind K_NONE with a word: why it cannot be said */
} peer_def;

struct tl_peer {
    const char *name, *snapshot, *aggregate;
    peer_n n;
    bool errors_ok;  /* an error inside HTTP 200 is a success */
    bool nothing_ok; /* so is an answer without a token */
    bool cut_ok;     /* so is an answer without its end */
    bool zero;       /* what never happened is reported as 0 */
    bool engine;     /* no client: reads the engine's own timings */
    bool strips;     /* strips each read before it splits records */
    peer_mark text_end; /* end-to-end in a text completion, when it differs; else M_NONE */
    peer_rule fails[6], notes[6];
    peer_def def[TL_PEER_SLOTS];
};

typedef struct peer_view {
    const tl_request *r;
    tl_metrics m;
    uint64_t t[M_COUNT];
    int64_t choices; /* records with a choice */
    int64_t answer_chunks;
    tl_event_kind first_choice;
    bool completion; /* a text completion, not a chat */
    bool usage_event;
    bool text_lost;  /* this tool's splitter loses the text (comments) */
    unsigned is;     /* C_* */
} peer_view;

void peer_view_of(peer_view *v, const tl_request *r); /* tl_metrics_free(&v->m) ends it */
int64_t peer_count(const char **from, tl_peer_cause_id *cause, const tl_peer *p, const peer_view *v);
tl_peer_cause_id peer_segment(const peer_view *v, peer_mark a, peer_mark b);

#endif
