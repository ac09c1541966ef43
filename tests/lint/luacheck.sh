#!/bin/sh
# Every Lua file: undefined globals, unused variables, what the sandbox does not have (.luacheckrc).
cd "$(dirname "$0")/../.." || exit 2
command -v luacheck >/dev/null || { echo "luacheck: not installed (apt-get install lua-check)"; exit 77; }
luacheck --quiet --no-color --formatter plain --config .luacheckrc lua machines experiments || exit 1
echo "luacheck: ok, $(find lua machines experiments -name '*.lua' | wc -l) files"
