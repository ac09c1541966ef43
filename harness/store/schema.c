/* Which columns each table has, and the guards that make every table append-only.
 *
 * BEFORE UPDATE and BEFORE DELETE triggers are not enough: INSERT OR REPLACE deletes the old row without firing them
 * (TRAPS.md 6), so a third guard refuses a row whose key exists. */
#include "store/store_impl.h"

const tl_store_table tl_store_tables[] = {
    {"machine", "id name facts", "id"},
    {"engine", "id name facts", "id"},
    {"model", "id name bytes facts", "id"},
    {"experiment", "id name script facts", "id"},
    {"run", "id kind experiment machine claim simulated plan plan_sha256 seed argv env tally git facts rerun_of wall_ns utc_offset", "id"},
    {"run_state", "run session state t_ns reason facts wall_ns utc_offset", NULL},
    {"cell", "run key position axes model facts", "run,key run,position"},
    {"trial", "id run cell round position session engine cache_claimed t_start_ns probe_before", "id"},
    {"trial_end", "trial finished reason cache_verified t_end_ns probe_after facts", "trial"},
    {"request", "id trial position role session outcome error_class error_text http_status t_intended_ns t_sent_ns t_connected_ns "
                "t_headers_ns t_first_byte_ns t_close_ns connects body prompt_sha256 counters metrics finish_reason text_sha256 "
                "last_object", "id trial,position"},
    {"events", "request count body", "request"},
    {"telemetry", "run trial source t_ns body", NULL},
    {"artifact", "id run trial name mime sha256 bytes body", "id"},
    {"edge", "value input role position", "value,position"},
    {"value", "id run cell name label number null_reason lo hi interval n unit statistic formula source", "id"},
    {"figure", "id report name run spec_sha256 data_sha256 render_sha256 spec data facts command", "id"},
    {"retraction", "id value why instead wall_ns", "id"},
};
const size_t tl_store_tables_n = TL_COUNT(tl_store_tables);

const tl_store_table *store_table(const char *name) {
    for (size_t i = 0; i < tl_store_tables_n; i++)
        if (tl_str_eq(tl_store_tables[i].name, name)) return &tl_store_tables[i];
    return NULL;
}

/* "run,key run,position" -> "seq=new.seq OR (run=new.run AND key=new.key) OR (...)" */
static void same_key(tl_buf *b, const char *unique) {
    tl_buf_str(b, "seq=new.seq");
    for (const char *p = unique; p != NULL && *p;) {
        tl_buf_str(b, " OR (");
        for (bool first = true; *p && *p != ' '; first = false) {
            size_t n = strcspn(p, ", ");
            tl_buf_fmt(b, "%s%.*s=new.%.*s", first ? "" : " AND ", (int)n, p, (int)n, p);
            p += n;
            if (*p == ',') p++;
        }
        tl_buf_char(b, ')');
        if (*p == ' ') p++;
    }
}

static void guard(tl_buf *b, const char *table, const char *unique) {
    tl_buf_fmt(b, "CREATE TRIGGER %s_no_update BEFORE UPDATE ON %s BEGIN SELECT RAISE(ABORT, 'the store is append-only: nothing is changed'); END;\n",
               table, table);
    tl_buf_fmt(b, "CREATE TRIGGER %s_no_delete BEFORE DELETE ON %s BEGIN SELECT RAISE(ABORT, 'the store is append-only: nothing is deleted'); END;\n",
               table, table);
    tl_buf_fmt(b, "CREATE TRIGGER %s_no_replace BEFORE INSERT ON %s WHEN EXISTS (SELECT 1 FROM %s WHERE ", table, table, table);
    same_key(b, unique);
    tl_buf_str(b, ") BEGIN SELECT RAISE(ABORT, 'the store is append-only: this row exists'); END;\n");
}

char *store_guards_sql(void) {
    tl_buf b;
    tl_buf_init(&b, 0);
    guard(&b, "chain", NULL);
    for (size_t i = 0; i < tl_store_tables_n; i++) guard(&b, tl_store_tables[i].name, tl_store_tables[i].unique);
    return tl_buf_take(&b);
}

int tl_store_schema_version(void) {
    return TL_STORE_VERSION;
}
