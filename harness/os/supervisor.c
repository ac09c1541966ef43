/* The process between tally and a child. It lives as long as tally wants the child to and not longer than
 * tally: it blocks on a pipe that only tally can write to, and takes end of file as tally's death.
 * (PR_SET_PDEATHSIG in the child alone would not do: it does not reach grandchildren, and it fires when the
 * *thread* that forked ends.)
 *
 * Everything here runs after a fork of a process with threads, so only async-signal-safe calls are allowed:
 * no allocation, no stdio, no locks.
 *
 * The program's zombie is not reaped before the end: while it exists neither its process id nor its group id
 * can be given to a stranger, so a kill can never hit one. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os_impl.h"

enum { FD_LIFE = 3, FD_REPORT = 4, FD_EXEC = 3, FD_ABOVE = 16, KILL_ROUNDS = 3, REAP_MS_MAX = 10000 };

static void on_child(int number) {
    TL_UNUSED(number); /* its arrival interrupts pselect: that is all it is for */
}

static bool write_all(int fd, const void *p, size_t n) {
    const char *at = p;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

static _Noreturn void give_up(int fd, os_stage stage) {
    os_exec_failure f = {.stage = (int)stage, .errno_value = errno};
    write_all(fd, &f, sizeof f);
    _exit(127);
}

/* False when the limit in force is stricter already. */
static bool lower(struct rlimit *l, uint64_t value) {
    if (l->rlim_max != RLIM_INFINITY && (rlim_t)value > l->rlim_max) return false;
    l->rlim_cur = l->rlim_max = (rlim_t)value;
    return true;
}

/* A macro, because the resource's type differs between systems. */
#define SET_LIMIT(what, value)                                                                               \
    ((value) == 0 || (getrlimit(what, &l) == 0 && (!lower(&l, value) || setrlimit(what, &l) == 0)))

static bool set_limits(const os_child_plan *p) {
    struct rlimit l;
    return SET_LIMIT(RLIMIT_CPU, p->limit_cpu_s) && SET_LIMIT(RLIMIT_AS, p->limit_memory_bytes) &&
           SET_LIMIT(RLIMIT_FSIZE, p->limit_file_bytes);
}

static void default_signals(void) {
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = SIG_DFL;
    for (int i = 1; i < NSIG; i++) sigaction(i, &a, NULL); /* refused for SIGKILL and the like: fine */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The forked child until exec. */
static _Noreturn void become_program(const os_child_plan *p, pid_t supervisor) {
    int fd = p->exec_fd;
    setsid();
    os_die_with_parent(supervisor);
    /* Moved out of the way first: a pipe end may have any number, 0 to 2 included. */
    int std[3];
    for (int i = 0; i < 3; i++) {
        std[i] = fcntl(p->std[i], F_DUPFD, FD_ABOVE);
        if (std[i] < 0) give_up(fd, OS_STAGE_STREAM);
    }
    int high = fcntl(fd, F_DUPFD, FD_ABOVE);
    if (high < 0) give_up(fd, OS_STAGE_STREAM);
    for (int i = 0; i < 3; i++)
        if (dup2(std[i], i) < 0) give_up(high, OS_STAGE_STREAM);
    if (dup2(high, FD_EXEC) < 0 || fcntl(FD_EXEC, F_SETFD, FD_CLOEXEC) != 0) give_up(high, OS_STAGE_STREAM);
    os_close_from(FD_EXEC + 1);
    if (p->cwd && chdir(p->cwd) != 0) give_up(FD_EXEC, OS_STAGE_CWD);
    if (!set_limits(p)) give_up(FD_EXEC, OS_STAGE_LIMIT);
    default_signals();
    execve(p->path, p->argv, p->env);
    give_up(FD_EXEC, OS_STAGE_EXEC);
}

/* True when the program has ended; it stays a zombie. */
static bool ended(pid_t child, os_exit_report *r) {
    siginfo_t si;
    memset(&si, 0, sizeof si);
    if (waitid(P_PID, (id_t)child, &si, WEXITED | WNOHANG | WNOWAIT) != 0 || si.si_pid != child) return false;
    bool exited = si.si_code == CLD_EXITED;
    r->code = exited ? si.si_status & 0xff : 128 + si.si_status;
    r->signal = exited ? 0 : si.si_status;
    return true;
}

/* Orphans that became ours and have ended. */
static void reap_strangers(pid_t child) {
    for (;;) {
        siginfo_t si;
        memset(&si, 0, sizeof si);
        if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) != 0) return;
        if (si.si_pid == 0 || si.si_pid == child) return;
        waitpid(si.si_pid, NULL, WNOHANG);
    }
}

static void pause_1ms(void) {
    struct timespec t = {.tv_nsec = 1000000};
    nanosleep(&t, NULL);
}

static _Noreturn void end_all(pid_t child, bool reported) {
    os_exit_report r;
    /* More than once: a process that forks at this very moment is caught in the next round. */
    for (int i = 0; i < KILL_ROUNDS; i++) {
        kill(-child, SIGKILL);
        os_kill_children();
        if (i + 1 < KILL_ROUNDS) pause_1ms();
    }
    for (int ms = 0; ms < REAP_MS_MAX; ms++) {
        if (!reported && ended(child, &r)) {
            write_all(FD_REPORT, &r, sizeof r);
            reported = true;
        }
        pid_t gone;
        while ((gone = waitpid(-1, NULL, WNOHANG)) > 0 || (gone < 0 && errno == EINTR)) {
        }
        if (gone < 0) break; /* ECHILD: nobody is left */
        os_kill_children();
        pause_1ms();
    }
    _exit(0);
}

static void watch(pid_t child) {
    sigset_t quiet;
    sigfillset(&quiet);
    sigdelset(&quiet, SIGCHLD); /* delivered only while pselect sleeps, so none is missed */
    bool reported = false;
    for (;;) {
        os_exit_report r;
        if (!reported && ended(child, &r)) {
            write_all(FD_REPORT, &r, sizeof r);
            reported = true;
        }
        if (!reported) reap_strangers(child);
        fd_set set;
        FD_ZERO(&set);
        FD_SET(FD_LIFE, &set);
        if (pselect(FD_LIFE + 1, &set, NULL, NULL, NULL, &quiet) <= 0) continue;
        char command = 'K';
        ssize_t n = read(FD_LIFE, &command, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n == 1 && command == 'T')
            kill(-child, SIGTERM);
        else
            end_all(child, reported);
    }
}

_Noreturn void os_supervise(const os_child_plan *plan) {
    setsid(); /* a terminal's Ctrl-C must reach tally only */
    struct sigaction a;
    memset(&a, 0, sizeof a);
    a.sa_handler = on_child;
    sigaction(SIGCHLD, &a, NULL);
    os_process_name("tally-guard");
    os_adopt_orphans();
    pid_t self = getpid(), child = fork();
    if (child == 0) become_program(plan, self);
    if (child < 0) give_up(plan->exec_fd, OS_STAGE_FORK);
    int life = fcntl(plan->life_fd, F_DUPFD, FD_ABOVE), report = fcntl(plan->report_fd, F_DUPFD, FD_ABOVE);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; i < 3; i++)
        if (null >= 0) dup2(null, i);
    bool ok =
        life >= 0 && report >= 0 && dup2(life, FD_LIFE) == FD_LIFE && dup2(report, FD_REPORT) == FD_REPORT;
    if (!ok) {
        kill(child, SIGKILL);
        _exit(127);
    }
    os_close_from(FD_REPORT + 1);
    ssize_t root = chdir("/"); /* hold no folder that somebody may want to unmount */
    TL_UNUSED(root);
    write_all(FD_REPORT, &child, sizeof child);
    watch(child);
    _exit(0);
}
