/* The verbs, sorted by name. A new verb is a line here and a file verb_NAME.c: the build, help, man page and completions
 * read this list. */
TL_VERB(doctor)
TL_VERB(synth)
