/* Private to cli: `tally doctor ENDPOINT`: a running server's habits, and who goes wrong on them. */
#ifndef TL_CLI_DOCTOR_ENDPOINT_H
#define TL_CLI_DOCTOR_ENDPOINT_H

#include "cli/cli.h"

extern const tl_option tl_doctor_options[]; /* they need an ENDPOINT; ends with {0} */
/* The operand of c is the address. */
tl_status tl_doctor_endpoint(tl_cli *c, tl_err *e) TL_MUST_USE;

#endif
