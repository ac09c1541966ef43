/* The vocabulary of a synthetic model: special tokens, bytes, single characters, word pieces (every prefix, so that
 * greedy merging reaches the whole word), the script's words, fillers. It depends on vocab, think and answer only, so
 * a draft shares it with its target. Script words are three invented syllables, each word once. */
#include "model_impl.h"

#define SPACE_MARK "\xe2\x96\x81" /* U+2581, a blank in SentencePiece */

enum { T_NORMAL = 1, T_UNKNOWN = 2, T_CONTROL = 3, T_USER = 4, T_BYTE = 6 };

/* Frequent English words, so that a prompt costs about as many tokens as with a real tokenizer. */
static const char WORDS[] =
    "the of and to in is you that it he was for on are as with his they at be this have from or one had by word but "
    "not what all were we when your can said there use an each which she do how their if will up other about out many "
    "then them these so some her would make like him into time has look two more write go see number no way could "
    "people my than first water been call who its now find long down day did get come made may part over new sound "
    "take only little work know place year live me back give most very after thing our just name good sentence man "
    "think say great where help through much before line right too mean old any same tell boy follow came want show "
    "also around form three small set put end does another well large must big even such because turn here why ask "
    "went men read need land different home us move try kind hand picture again change off play spell air away animal "
    "house point page letter mother answer found study still learn should world model memory speed token measure "
    "question please explain write short story local machine text data system user assistant";

typedef struct builder {
    synth_vocab *v;
    uint32_t *slot; /* open-addressing set of text positions + 1 */
    size_t mask;
    float next_score;
} builder;

static size_t slot_of(const builder *b, const char *s) {
    size_t h = (size_t)tl_seed_of(s) & b->mask;
    while (b->slot[h] != 0 && strcmp(b->v->text[b->slot[h] - 1], s) != 0) h = (h + 1) & b->mask;
    return h;
}

static bool add(builder *b, const char *s, int32_t type, float score) {
    size_t h = slot_of(b, s);
    if (b->slot[h] != 0) return false;
    synth_vocab *v = b->v;
    size_t ct = v->cap_text, cs = v->cap_score, cy = v->cap_type;
    tl_grow(&v->text, &ct, (size_t)v->n + 1, sizeof *v->text);
    tl_grow(&v->score, &cs, (size_t)v->n + 1, sizeof *v->score);
    tl_grow(&v->type, &cy, (size_t)v->n + 1, sizeof *v->type);
    v->cap_text = (uint32_t)ct;
    v->cap_score = (uint32_t)cs;
    v->cap_type = (uint32_t)cy;
    v->text[v->n] = tl_arena_strdup(v->arena, s);
    v->score[v->n] = score;
    v->type[v->n] = type;
    b->slot[h] = ++v->n;
    return true;
}

static void add_piece(builder *b, const char *s) {
    if (add(b, s, T_NORMAL, b->next_score)) b->next_score -= 1;
}

static void add_word(builder *b, const char *w, size_t n) {
    char piece[64];
    for (size_t i = 1; i <= n && i < 32; i++) {
        snprintf(piece, sizeof piece, SPACE_MARK "%.*s", (int)i, w);
        add_piece(b, piece);
    }
}

static void add_base(builder *b) {
    char s[8];
    add(b, "<unk>", T_UNKNOWN, 0);
    add(b, "<s>", T_CONTROL, 0);
    add(b, "</s>", T_CONTROL, 0);
    for (unsigned i = 0; i < 256; i++) {
        snprintf(s, sizeof s, "<0x%02X>", i);
        add(b, s, T_BYTE, 0);
    }
    add(b, "<|im_start|>", T_CONTROL, 0);
    add(b, "<|im_end|>", T_CONTROL, 0);
    /* user-defined, so that the server's text shows them and its parser finds the thinking */
    b->v->think_open = b->v->n;
    add(b, "<think>", T_USER, 0);
    b->v->think_close = b->v->n;
    add(b, "</think>", T_USER, 0);
    b->v->blank_line = b->v->n;
    add(b, "\n\n", T_USER, 0);
    b->next_score = -1;
    add_piece(b, SPACE_MARK);
    for (char c = 33; c < 127; c++) {
        char one[2] = {c, 0};
        add_piece(b, one);
    }
    for (const char *p = WORDS; *p;) {
        size_t n = strcspn(p, " ");
        add_word(b, p, n);
        p += n + strspn(p + n, " ");
    }
}

/* The i-th candidate: 60 syllables in three places, spread by a step that is prime to 60^3. The first word of a part
 * has no blank in front: llama-server strips that of an answer in one of its modes only. */
static void candidate(char out[16], uint64_t i, bool opens) {
    static const char C[] = "bdfgklmnprst", V[] = "aeiou";
    uint64_t x = (i * 104729 + 7919) % 216000;
    char w[7] = "";
    for (int k = 0; k < 3; k++, x /= 60) {
        w[2 * k] = C[x % 60 / 5];
        w[2 * k + 1] = V[x % 5];
    }
    snprintf(out, 16, "%s%s", opens ? "" : SPACE_MARK, w);
}

/* Script words and fillers score below every piece, so that a prompt's text never meets them before its pieces. */
static void add_script(builder *b, uint32_t think, uint32_t words, uint32_t total) {
    char s[32];
    float score = -1e5f;
    uint64_t i = 0; /* a skipped candidate collides with a word piece; no two words are equal without their blank */
    b->v->script_first = b->v->n;
    for (uint32_t k = 0; k < words; score -= 1) {
        candidate(s, i++, k == 0 || k == think);
        if (add(b, s, T_NORMAL, score)) k++;
    }
    for (uint64_t k = 0; b->v->n < total; k++, score -= 1) {
        snprintf(s, sizeof s, SPACE_MARK "x%" PRIu64, k);
        add(b, s, T_NORMAL, score);
    }
}

static void build(synth_vocab *out, uint32_t think, uint32_t words, uint32_t total) {
    builder b = {.v = out};
    size_t slots = 8192;
    while (slots < 2 * (size_t)total) slots *= 2;
    *out = (synth_vocab){.arena = tl_arena_new()};
    b.slot = tl_xalloc(slots * sizeof *b.slot);
    b.mask = slots - 1;
    add_base(&b);
    add_script(&b, think, words, total);
    free(b.slot);
}

uint32_t synth_vocab_base(void) {
    synth_vocab v;
    build(&v, 0, 0, 0);
    uint32_t n = v.n;
    synth_vocab_free(&v);
    return n;
}

tl_status synth_vocab_build(synth_vocab *out, const tl_synth_spec *spec, tl_err *e) {
    uint64_t base = synth_vocab_base(), words = (uint64_t)spec->think + spec->answer;
    uint64_t least = base + words + synth_wrong_count(spec);
    *out = (synth_vocab){0};
    if (spec->vocab < least) {
        tl_fail(e, TL_INVALID, "a vocabulary of %u tokens is too small: %" PRIu64 " are needed (%" PRIu64 " for any text"
                ", %" PRIu64 " for the script, %" PRIu64 " for wrong steps)", spec->vocab, least, base, words,
                synth_wrong_count(spec));
        return tl_remedy(e, "use --vocab %" PRIu64 " or more, or a shorter script", (least + 255) / 256 * 256);
    }
    build(out, spec->think, (uint32_t)words, spec->vocab);
    return TL_OK;
}

void synth_vocab_free(synth_vocab *v) {
    free(v->text);
    free(v->score);
    free(v->type);
    tl_arena_free(v->arena);
    *v = (synth_vocab){0};
}

/* ---- script -------------------------------------------------------------------------------------------------- */

/* Steps that may go wrong: all but the last, which ends the text. */
static uint64_t step_count(const tl_synth_spec *spec) {
    return (uint64_t)spec->answer + (spec->think > 0 ? (uint64_t)spec->think + 3 : 0);
}

uint64_t synth_wrong_count(const tl_synth_spec *spec) {
    if (spec->answer == 0 || !(spec->wrong > 0)) return 0;
    return (uint64_t)(spec->wrong * (double)(step_count(spec) - 1) + 0.5);
}

/* Exactly the asked share of steps goes to fillers, each to its own, chosen by seed. */
static void make_wrong(synth_step *s, size_t n, uint32_t filler, const tl_synth_spec *spec) {
    size_t wrong = (size_t)synth_wrong_count(spec);
    if (wrong == 0) return;
    size_t *order = tl_xalloc(n * sizeof *order);
    tl_rng rng;
    for (size_t i = 0; i + 1 < n; i++) order[i] = i;
    tl_rng_seed(&rng, spec->seed ^ tl_seed_of("wrong steps"));
    tl_rng_shuffle(&rng, order, n - 1, sizeof *order);
    for (size_t i = 0; i < wrong && i + 1 < n; i++) s[order[i]].to = filler + (uint32_t)i;
    free(order);
}

synth_step *synth_steps(size_t *n_out, uint32_t *first_out, const synth_vocab *v, const tl_synth_spec *spec) {
    uint32_t words = spec->think + spec->answer, at = v->script_first;
    size_t n = 0, cap = (size_t)words + 8;
    uint32_t *seq = tl_xalloc(cap * sizeof *seq);
    if (spec->think > 0) {
        seq[n++] = v->think_open;
        for (uint32_t i = 0; i < spec->think; i++) seq[n++] = at++;
        seq[n++] = v->think_close;
        seq[n++] = v->blank_line;
    }
    for (uint32_t i = 0; i < spec->answer; i++) seq[n++] = at++;
    seq[n++] = SYNTH_EOS;
    synth_step *s = tl_xalloc(cap * sizeof *s);
    for (size_t i = 0; i + 1 < n; i++) s[i] = (synth_step){seq[i], seq[i + 1]};
    *first_out = seq[0];
    *n_out = n - 1;
    make_wrong(s, n - 1, v->script_first + words, spec);
    free(seq);
    return s;
}

static void add_words(tl_buf *b, const synth_vocab *v, uint32_t from, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const char *s = v->text[from + i];
        bool blank = tl_str_starts(s, SPACE_MARK);
        if (blank) tl_buf_char(b, ' ');
        tl_buf_str(b, blank ? s + sizeof SPACE_MARK - 1 : s);
    }
}

tl_status tl_synth_text(tl_buf *reasoning, tl_buf *content, const tl_synth_spec *spec, tl_err *e) {
    tl_synth_spec s = *spec;
    synth_vocab v = {0};
    tl_status st = TL_OK;
    if (s.answer == 0) return tl_fail(e, TL_INVALID, "a model of random weights has no fixed text");
    TRY(synth_resolve(&s, e));
    TRY(synth_vocab_build(&v, &s, e));
    add_words(reasoning, &v, v.script_first, s.think);
    add_words(content, &v, v.script_first + s.think, s.answer);
out:
    synth_vocab_free(&v);
    return st;
}

uint64_t tl_synth_completion_tokens(const tl_synth_spec *spec, bool with_thinking) {
    if (spec->answer == 0) return 0;
    return (uint64_t)spec->answer + 1 + (with_thinking && spec->think > 0 ? (uint64_t)spec->think + 3 : 0);
}
