/* tally: the process. */
#include "cli/cli_impl.h"

int main(int argc, char **argv) {
    tl_signal_install();
    return cli_main(argc, argv, stdout);
}
