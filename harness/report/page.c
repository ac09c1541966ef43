/* The page around the body: one file, no network, dark and print styles, a phone's width without sideways
 * scrolling, and a few lines of script that only copy the re-run command; without them everything else works.
 * It is well-formed XML too. */
#include "report/report_impl.h"

static const char CSS[] =
    ":root{color-scheme:light "
    "dark;--ink:#1d2129;--soft:#5c6370;--line:#e3e6ea;--bg:#fff;--panel:#f7f8fa;--measured:#0b7a75;"
    "--derived:#9a5b00;--official:#1f4f8f;--cited:#6d4a8c;--bad:#b3261e}\n"
    "@media "
    "(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--soft:#a3aab5;--line:#2f343c;--bg:#15181d;--panel:#"
    "1c2026;"
    "--measured:#4fc3bc;--derived:#e0a458;--official:#8ab4f0;--cited:#c3a5e0;--bad:#f2a19b}\n"
    ".plot [stroke=\"rgb( 11, 122, 117)\"],.plot [stroke='rgb( 11, 122, 117)']{stroke:#4fc3bc}"
    ".plot [fill=\"rgb( 11, 122, 117)\"]{fill:#4fc3bc}.plot [color=\"rgb( 11, 122, 117)\"]{color:#4fc3bc}"
    ".plot [stroke=\"rgb(179, 107,   0)\"]{stroke:#e0a458}.plot [fill=\"rgb(179, 107,   0)\"]{fill:#e0a458}"
    ".plot [color=\"rgb(179, 107,   0)\"]{color:#e0a458}"
    ".plot [stroke=\"rgb( 31,  79, 143)\"]{stroke:#8ab4f0}.plot [fill=\"rgb( 31,  79, 143)\"]{fill:#8ab4f0}"
    ".plot [color=\"rgb( 31,  79, 143)\"]{color:#8ab4f0}"
    ".plot [stroke=\"rgb(109,  74, 140)\"]{stroke:#c3a5e0}.plot [fill=\"rgb(109,  74, 140)\"]{fill:#c3a5e0}"
    ".plot [color=\"rgb(109,  74, 140)\"]{color:#c3a5e0}"
    ".plot [fill=\"rgb(51,56,66)\"]{fill:#e6e8eb}.plot [fill=\"rgb(85,91,102)\"]{fill:#a3aab5}"
    ".plot [stroke=\"rgb(227, 230, 234)\"]{stroke:#2f343c}.plot [color=\"white\"]{color:#15181d}"
    ".plot [fill=\"rgb(255, 255, 255)\"]{fill:#15181d}}\n"
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}\n"
    "body{margin:0;background:var(--bg);color:var(--ink);font:17px/1.75 system-ui,\"Noto Sans TC\",\"Noto "
    "Sans CJK TC\",\"PingFang TC\","
    "\"Noto Sans SC\",\"Noto Sans CJK SC\",\"PingFang SC\",sans-serif;overflow-wrap:break-word}\n"
    "main{max-width:46rem;margin:0 auto;padding:2.5rem 1.25rem 5rem}\n"
    ".eyebrow{color:var(--soft);font-size:.86rem;letter-spacing:.04em;margin:0}\n"
    "h1{font-size:1.9rem;line-height:1.3;margin:.2rem 0 "
    ".6rem;letter-spacing:-.01em}h2{font-size:1.25rem;margin:2.6rem 0 .6rem}"
    "h3{font-size:1.05rem;margin:2rem 0 .4rem}p{margin:.8rem 0}a{color:inherit;text-underline-offset:.2em}\n"
    "blockquote{border-left:3px solid var(--measured);background:var(--panel);padding:.9rem "
    "1.1rem;border-radius:0 8px 8px 0;"
    "margin:1.3rem 0}blockquote p{margin:.2rem 0}\n"
    ".v{white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    ".chip{display:inline-block;font-size:.72em;line-height:1;padding:.25em .45em;border-radius:4px;margin:0 "
    ".15em 0 .3em;vertical-align:.12em;"
    "border:1px solid "
    "currentColor;text-decoration:none;font-weight:600;white-space:nowrap;letter-spacing:0}\n"
    ".chip.m{background:var(--measured);border-color:var(--measured);color:var(--bg)}.chip.d{color:var(--"
    "derived);border-style:dashed}"
    ".chip.o{color:var(--official)}.chip.c{color:var(--cited);border-style:dotted;border-width:1.5px}\n"
    "figure{margin:1.8rem 0}.plot svg{width:100%;height:auto;display:block}.plot.narrow{display:none}\n"
    "figcaption{font-size:.92rem;color:var(--soft);margin-top:.5rem}figcaption b{color:var(--ink)}\n"
    ".src{display:flex;gap:.2rem .6rem;align-items:center;flex-wrap:wrap;font:12.5px/1.6 ui-monospace,\"SF "
    "Mono\",Menlo,Consolas,"
    "\"Noto Sans Mono CJK TC\",monospace;color:var(--soft);border-top:1px solid "
    "var(--line);padding-top:.5rem;margin-top:.5rem}\n"
    ".src>span,code{overflow-wrap:anywhere}.src .chip{margin:0;font-size:11px}\n"
    ".cmd{display:inline-flex;gap:.6rem;align-items:center;max-width:100%}.cmd code{color:var(--ink)}\n"
    ".copy{font:inherit;font-size:12.5px;border:1px solid "
    "var(--line);background:var(--panel);color:var(--ink);border-radius:5px;padding:.1rem .5rem;"
    "cursor:pointer;white-space:nowrap}\n"
    ".copy[hidden]{display:none}.ok{color:var(--measured)}.stale{color:var(--bad)}\n"
    ".rerun{border:1px solid var(--line);background:var(--panel);border-radius:8px;padding:.7rem "
    ".9rem;margin:1.3rem 0}.rerun p{margin:0 0 .3rem}\n"
    "code,pre{font-family:ui-monospace,\"SF Mono\",Menlo,Consolas,\"Noto Sans Mono CJK "
    "TC\",monospace;font-size:.88em}\n"
    "pre{background:var(--panel);border:1px solid var(--line);border-radius:8px;padding:.8rem "
    "1rem;white-space:pre-wrap;overflow-wrap:anywhere;"
    "line-height:1.6}\n"
    "table{border-collapse:collapse;width:100%;font-size:.93rem;font-variant-numeric:tabular-nums}\n"
    "th{font-weight:600;color:var(--soft);border-bottom:1.5px solid var(--ink);padding:.35rem "
    ".6rem;text-align:right;vertical-align:bottom}"
    "td{border-bottom:1px solid var(--line);padding:.4rem "
    ".6rem;text-align:right}th:first-child,td:first-child{text-align:left}td "
    ".th{display:none}.l{text-align:left}.mid{text-align:center}td.n,th.n{text-align:right}td.n>span:last-child,td:first-child{white-space:nowrap}\n"
    "details{border:1px solid var(--line);border-radius:8px;padding:.5rem .9rem;margin:1rem "
    "0;background:var(--panel)}"
    "summary{cursor:pointer;font-weight:600}\n"
    "details.data{border:0;background:none;padding:0;margin:.4rem "
    "0;font-size:.85rem;color:var(--soft)}details.data summary{font-weight:400}details.data "
    "th[scope]{text-align:left;color:var(--ink);border-bottom-width:1px;padding-top:.8rem}\n"
    ".tree{font:13.5px/1.8 ui-monospace,Menlo,Consolas,\"Noto Sans Mono CJK TC\",monospace;margin:.4rem "
    "0;padding-left:0;list-style:none;"
    "overflow-wrap:anywhere}.tree ul{list-style:none;padding-left:1.4rem;border-left:1px solid "
    "var(--line);margin-left:.35rem}\n"
    ".sources,.footnotes{border-top:1px solid var(--line);margin-top:3rem;font-size:.86rem}.sources "
    "h2{font-size:1rem;margin:1rem 0 .4rem}"
    ".sources ol{padding-left:1.6rem}.sources li:target{background:var(--panel)}.sources .tree "
    "li{list-style:none}\n"
    "footer{border-top:1px solid "
    "var(--line);margin-top:2rem;padding-top:1rem;font-size:.85rem;color:var(--soft)}footer "
    "span{white-space:nowrap}footer .chip{margin:0 .6em 0 .2em}sup{line-height:0}.src code{font-size:1em}\n"
    "@media (max-width:600px){body{font-size:16px}main{padding:1.4rem 1rem "
    "4rem}h1{font-size:1.55rem}.plot.wide{display:none}.plot.narrow{display:block}\n"
    ".cards table,.cards tbody,.cards tr{display:block}.cards "
    "thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}\n"
    ".cards tr{border:1px solid var(--line);border-radius:8px;padding:.3rem .8rem;margin:.6rem "
    "0;background:var(--panel)}\n"
    ".cards td{display:flex;justify-content:space-between;gap:1rem;text-align:right;padding:.25rem "
    "0;border-bottom:1px solid var(--line)}"
    ".cards td>span:last-child{flex:none}.cards td:last-child{border-bottom:0}.cards td:first-child{font-weight:600}.cards td "
    ".th{display:inline;color:var(--soft);text-align:left;font-weight:400}\n"
    ".tbl{overflow-wrap:anywhere}.tbl:not(.cards) th,.tbl:not(.cards) td{padding:.35rem .3rem}details.data "
    "table{font-size:.8rem}}\n"
    "@media "
    "print{.copy,details.data{display:none}body{font-size:11pt}figure,details,tr{break-inside:avoid}.chip.m{"
    "color:#fff;"
    "print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n";

static const char SCRIPT[] =
    "for(const b of "
    "document.querySelectorAll('.copy')){if(!navigator.clipboard)break;b.hidden=false;b.onclick=function(){"
    "const "
    "t=b.textContent;navigator.clipboard.writeText(b.previousElementSibling.textContent).then(function(){"
    "b.textContent=b.dataset.done;setTimeout(function(){b.textContent=t},1500)})}}";

/* JSON inside <script>: '<' and '&' never as they are, so that nothing in it can end the element. */
static void script_json(tl_buf *b, const char *s) {
    for (; *s; s++) {
        if (*s == '<')
            tl_buf_str(b, "\\u003c");
        else if (*s == '>')
            tl_buf_str(b, "\\u003e");
        else if (*s == '&')
            tl_buf_str(b, "\\u0026");
        else
            tl_buf_char(b, *s);
    }
}

static void eyebrow(tl_buf *b, const rep *r) {
    const char *keys[] = {"series", "day", "map"};
    bool any = false;
    for (size_t i = 0; i < TL_COUNT(keys); i++) {
        const char *v = tl_json_str(r->front, keys[i], "");
        if (*v == 0) continue;
        tl_buf_str(b, any ? " · " : "<p class=\"eyebrow\">");
        const char *hole = i == 1 ? strstr(r->w->day, "%s") : NULL;
        if (hole) tl_buf_add(b, r->w->day, (size_t)(hole - r->w->day));
        tl_buf_html(b, v);
        if (hole) tl_buf_str(b, hole + 2);
        any = true;
    }
    if (any) tl_buf_str(b, "</p>\n");
    tl_buf_str(b, "<h1>");
    tl_buf_html(b, tl_json_str(r->front, "title", ""));
    tl_buf_str(b, "</h1>\n");
    const char *below[] = {"subtitle", "needs"};
    for (size_t i = 0; i < TL_COUNT(below); i++) {
        if (tl_json_str(r->front, below[i], "")[0] == 0) continue;
        tl_buf_str(b, "<p class=\"eyebrow\">");
        tl_buf_html(b, tl_json_str(r->front, below[i], ""));
        tl_buf_str(b, "</p>\n");
    }
}

static void sources(tl_buf *b, const rep *r) {
    if (r->n_notes == 0) return;
    tl_buf_fmt(b, "<section class=\"sources\"><h2>%s</h2><ol>\n", r->w->sources);
    for (size_t n = 1; n <= r->n_notes; n++) {
        for (size_t i = 0; i < r->n_values; i++) {
            const rep_value *v = &r->values[i];
            if (v->note != n) continue;
            tl_buf_fmt(b, "<li id=\"v-%zu\">", n);
            if (rep_value_label(v->json) == REP_DERIVED) {
                tl_buf_str(b, "<details><summary>");
                rep_value_html(b, r, v->json, 0);
                tl_buf_str(b, "</summary>\n<ul class=\"tree\">");
                rep_tree_html(b, r, v->json, 0);
                tl_buf_str(b, "</ul></details>");
            } else {
                rep_value_html(b, r, v->json, 0);
                rep_source_html(b, r, v->json);
            }
            tl_buf_str(b, "</li>\n");
        }
    }
    tl_buf_str(b, "</ol></section>\n");
}

static void footer(tl_buf *b, const rep *r) {
    const rep_label order[REP_LABELS] = {REP_OFFICIAL, REP_MEASURED, REP_DERIVED, REP_CITED};
    tl_buf_fmt(b, "<footer>%s", r->w->key);
    for (int i = 0; i < REP_LABELS; i++) {
        tl_buf_str(b, "<span>");
        rep_chip_html(b, r, order[i], 0);
        tl_buf_fmt(b, "%s</span> ", r->w->how[order[i]]);
    }
    tl_buf_str(b, " · <a href=\"report.md\">Markdown</a> · <a href=\"manifest.json\">manifest</a>");
    if (r->spec->version) tl_buf_str(b, " · tally "), tl_buf_html(b, r->spec->version);
    tl_buf_str(b, "</footer>\n");
}

void rep_page(tl_buf *b, const rep *r, const char *manifest_text) {
    tl_buf_fmt(b,
               "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"%s\"><head><meta "
               "charset=\"utf-8\"/>\n"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n",
               r->w->lang);
    tl_buf_str(b, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
                  "'unsafe-inline'; "
                  "script-src 'unsafe-inline'; img-src data:\"/>\n<title>");
    tl_buf_html(b, tl_json_str(r->front, "title", ""));
    tl_buf_str(b, "</title>\n");
    if (tl_json_str(r->front, "description", "")[0]) {
        tl_buf_str(b, "<meta name=\"description\" content=\"");
        tl_buf_html(b, tl_json_str(r->front, "description", ""));
        tl_buf_str(b, "\"/>\n");
    }
    tl_buf_fmt(b, "<style>\n%s</style></head><body><main>\n", CSS);
    eyebrow(b, r);
    tl_buf_add(b, r->html.p, r->html.len);
    sources(b, r);
    footer(b, r);
    tl_buf_str(b, "</main>\n<script type=\"application/json\" id=\"tally-manifest\">");
    script_json(b, manifest_text);
    tl_buf_fmt(b, "</script>\n<script>%s</script>\n</body></html>\n", SCRIPT);
}
