/* The fixed words in three languages. */
#include "report/report_impl.h"

#include <strings.h>

const char *const rep_label_names[REP_LABELS] = {"measured", "derived", "official", "cited"};

static const rep_words WORDS[] = {
    {.lang = "zh-Hant",
     .label = {"實測", "推算", "官方", "引用"},
     .figure = "圖",
     .table = "表",
     .sources = "數字的出處",
     .data = "這張圖的資料",
     .current = "現行",
     .stale = "過期",
     .copy = "複製",
     .copied = "已複製",
     .retrieved = "取得於",
     .formula = "公式",
     .series = "系列",
     .missing = "缺",
     .interval = "區間",
     .how = {"可重現的量測", "公式攤開", "出自官方文件", "別人量的"},
     .day = "第 %s 天",
     .open = "【",
     .close = "】",
     .colon = "：",
     .sep = "；",
     .key = "章：",
     .stop = "。"},
    {.lang = "zh-Hans",
     .label = {"实测", "推算", "官方", "引用"},
     .figure = "图",
     .table = "表",
     .sources = "数字的出处",
     .data = "这张图的数据",
     .current = "现行",
     .stale = "过期",
     .copy = "复制",
     .copied = "已复制",
     .retrieved = "取得于",
     .formula = "公式",
     .series = "系列",
     .missing = "缺",
     .interval = "区间",
     .how = {"可重现的测量", "公式展开", "出自官方文档", "别人测的"},
     .day = "第 %s 天",
     .open = "【",
     .close = "】",
     .colon = "：",
     .sep = "；",
     .key = "章：",
     .stop = "。"},
    {.lang = "en",
     .label = {"measured", "derived", "official", "cited"},
     .figure = "Figure",
     .table = "Table",
     .sources = "Where the numbers come from",
     .data = "Data of this figure",
     .current = "current",
     .stale = "stale",
     .copy = "copy",
     .copied = "copied",
     .retrieved = "retrieved",
     .formula = "formula",
     .series = "series",
     .missing = "missing",
     .interval = "interval",
     .how = {"measured, repeatable", "computed, formula shown", "from the vendor's document",
             "measured by others"},
     .day = "Day %s",
     .open = " [",
     .close = "]",
     .colon = ": ",
     .sep = "; ",
     .key = "Labels: ",
     .stop = "."},
};

const rep_words *rep_words_of(const char *lang) {
    for (size_t i = 0; i < TL_COUNT(WORDS); i++) {
        if (tl_str_eq(lang, WORDS[i].lang)) return &WORDS[i];
    }
    return NULL;
}

rep_label rep_label_of(const char *name) {
    for (int i = 0; i < REP_LABELS; i++) {
        if (tl_str_eq(name, rep_label_names[i])) return (rep_label)i;
    }
    return REP_NONE;
}

rep_label rep_label_at(const char *p, size_t *n) {
    const char *open = tl_str_starts(p, "【") ? "【" : *p == '[' ? "[" : NULL;
    if (open == NULL) return REP_NONE;
    for (size_t i = 0; i < TL_COUNT(WORDS); i++) {
        for (int l = 0; l < REP_LABELS; l++) {
            const char *word = WORDS[i].label[l], *q = p + strlen(open);
            if (strncasecmp(q, word, strlen(word)) != 0) continue;
            q += strlen(word);
            const char *close = *open == '[' ? "]" : "】";
            if (!tl_str_starts(q, close)) continue;
            *n = (size_t)(q - p) + strlen(close);
            return (rep_label)l;
        }
    }
    return REP_NONE;
}
