# The tables of README.md from schema.sql: awk -f readme.awk schema.sql. The comment before CREATE TABLE is the table's
# text, the comment after a column is the column's. Anything else (indexes, triggers, constraints) is left out.
function flush_table() { if (rows != "") print "### " name "\n\n" about "\n\n| column | type | what |\n|---|---|---|\n" rows; rows = "" }
/^CREATE TABLE/ { name = $3; about = pending; inside = 1; rows = ""; next }
/^\) STRICT/ { flush_table(); inside = 0; pending = ""; next }
!inside && /^-- / { pending = (pending == "" ? "" : pending " ") substr($0, 4); next }
!inside { pending = ""; next }
/^  [a-z_]+ (TEXT|INTEGER|REAL|BLOB)/ {
    what = ""
    if (match($0, / -- .*$/)) what = substr($0, RSTART + 4)
    if (what == "" && match($0, /REFERENCES [a-z_]+/)) what = "a row of `" substr($0, RSTART + 11, RLENGTH - 11) "`"
    if (what == "" && match($0, /IN \([^)]*\)/)) { what = substr($0, RSTART + 4, RLENGTH - 5); gsub(/'/, "", what) }
    if ($1 == "seq" && what == "") what = "number in the chain"
    type = tolower($2)
    sub(/,$/, "", type)
    if ($0 !~ / NOT NULL/ && $0 !~ / PRIMARY KEY/) type = type ", may be NULL"
    gsub(/\|/, "\\|", what)
    rows = rows "| `" $1 "` | " type " | " what " |\n"
}
