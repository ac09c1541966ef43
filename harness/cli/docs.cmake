# Man page and completions, printed by the program itself from its table of verbs.
foreach(pair "tally.1=--man" "tally.bash=--completion=bash" "_tally=--completion=zsh" "tally.fish=--completion=fish")
  string(REGEX REPLACE "^([^=]*)=(.*)$" "\\1" file "${pair}")
  string(REGEX REPLACE "^([^=]*)=(.*)$" "\\2" option "${pair}")
  execute_process(COMMAND ${TALLY} ${option} OUTPUT_FILE ${OUT}/${file} RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "tally ${option} failed: ${failed}")
  endif()
endforeach()
