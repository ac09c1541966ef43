/* Signals: a flag that long loops look at. */
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "os/os_impl.h"

static _Atomic int pending;
static _Atomic int interrupts;

static void on_signal(int number) {
    int none = 0;
    atomic_compare_exchange_strong(&pending, &none, number);
    if (number == SIGINT && atomic_fetch_add(&interrupts, 1) > 0) {
        static const char text[] = "\ntally: interrupted twice, ending at once\n";
        ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
        TL_UNUSED(ignored);
        _exit(130);
    }
}

/* A signal that whoever started tally has ignored (nohup, a shell's background job) stays ignored. */
static void catch_unless_ignored(int number, const struct sigaction *a) {
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN) return;
    sigaction(number, a, NULL);
}

void tl_signal_install(void) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_signal; /* no SA_RESTART: a blocked read should notice */
    sigemptyset(&a.sa_mask);
    catch_unless_ignored(SIGINT, &a);
    catch_unless_ignored(SIGTERM, &a);
    catch_unless_ignored(SIGHUP, &a);
    a.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &a, NULL);
}

int tl_signal_pending(void) {
    return atomic_load(&pending);
}

void tl_signal_clear(void) {
    atomic_store(&interrupts, 0);
    atomic_store(&pending, 0);
}

const char *tl_signal_name(int number) {
    static const struct {
        int number;
        const char *name;
    } known[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
                 {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
                 {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
                 {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
                 {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
    for (size_t i = 0; i < TL_COUNT(known); i++)
        if (known[i].number == number) return known[i].name;
    static _Thread_local char text[24];
    snprintf(text, sizeof text, "signal %d", number);
    return text;
}
