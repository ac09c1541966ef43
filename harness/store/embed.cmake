file(READ ${IN} hex HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "/* generated from schema.sql */\n#include \"store/store_impl.h\"\n\nconst char tl_store_schema_sql[] = {${bytes}0};\n")
