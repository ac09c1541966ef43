/* The verbs, sorted by name. A new verb is a line here and a file verb_NAME.c: the build, help, man page and completions
 * read this list. */
TL_VERB(doctor)
TL_VERB(explain)
TL_VERB(list)
TL_VERB(plan)
TL_VERB(probe)
TL_VERB(report)
TL_VERB(rerun)
TL_VERB(retract)
TL_VERB(run)
TL_VERB(show)
TL_VERB(synth)
TL_VERB(verify)
