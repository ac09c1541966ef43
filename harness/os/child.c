/* Child processes, tally's side: prepares everything before the fork, then talks to the supervisor through
 * two pipes. Captured streams are read by a thread of their own, so that a child never blocks on a full pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os_impl.h"

extern char **environ;

enum { CAPTURE_DEFAULT = 1 << 20, CAPTURE_BLOCK = 1 << 16, LAST_READS_MAX = 64 };

typedef struct capture {
    int fd; /* read end, -1 when this stream is not captured or has ended */
    tl_buf kept;
    uint64_t total;
} capture;

struct tl_child {
    pid_t pid, supervisor;
    int life_fd, report_fd; /* -1 when closed */
    bool ended, lost;       /* lost: the supervisor went without a report */
    os_exit_report report;
    char *program;
    char text[96];
    tl_thread *reader;
    int stop_fd; /* write end: wakes the reader for good */
    int stop_read_fd;
    tl_mutex *lock; /* guards cap[].kept and .total */
    capture cap[2];
};

/* ---- environment and program ---- */

static bool same_name(const char *a, const char *b) {
    size_t na = strcspn(a, "="), nb = strcspn(b, "=");
    return na == nb && memcmp(a, b, na) == 0;
}

/* The array is owned, its strings are borrowed. */
static char **build_env(const tl_child_spec *spec) {
    char **v = NULL;
    size_t n = 0, cap = 0;
    const char *const *base = spec->env ? spec->env : (const char *const *)environ;
    for (; base && *base; base++) {
        bool replaced = false;
        for (const char *const *a = spec->env_add; a && *a; a++) replaced = replaced || same_name(*base, *a);
        if (!replaced) TL_PUSH(v, n, cap, (char *)(uintptr_t)*base);
    }
    for (const char *const *a = spec->env_add; a && *a; a++)
        if (strchr(*a, '=')) TL_PUSH(v, n, cap, (char *)(uintptr_t)*a);
    TL_PUSH(v, n, cap, NULL);
    return v;
}

static tl_status find_program(char **out, const tl_child_spec *spec, tl_err *e) {
    *out = NULL;
    if (!spec->argv || !spec->argv[0] || !*spec->argv[0])
        return tl_fail(e, TL_INVALID, "no program to start");
    *out = tl_path_which(spec->argv[0]);
    if (*out) return TL_OK;
    if (!strchr(spec->argv[0], '/')) {
        tl_fail(e, TL_MISSING, "program '%s' is not on PATH", spec->argv[0]);
        tl_remedy(e, "install %s, or add its folder to PATH", spec->argv[0]);
        return TL_MISSING;
    }
    if (!tl_file_exists(spec->argv[0])) {
        tl_fail(e, TL_MISSING, "program '%s' does not exist", spec->argv[0]);
        tl_remedy(e, "check the path, or install the program");
        return TL_MISSING;
    }
    tl_fail(e, TL_MISSING, "'%s' is not an executable file", spec->argv[0]);
    tl_remedy(e, "make it executable (chmod +x %s)", spec->argv[0]);
    return TL_MISSING;
}

/* ---- streams ---- */

/* What the child's 0, 1, 2 will be, and which of these descriptors tally closes after the fork. */
typedef struct streams {
    int fd[3];
    bool ours[3];
} streams;

static void close_streams(streams *s) {
    for (int i = 0; i < 3; i++)
        if (s->ours[i]) tl_fd_close(s->fd[i]);
    memset(s, 0, sizeof *s);
}

static tl_status open_input(streams *s, const char *input, tl_err *e) {
    s->ours[0] = true;
    if (!input) {
        s->fd[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return s->fd[0] >= 0 ? TL_OK : tl_file_fail("open", "/dev/null", errno, e);
    }
    FILE *f = tmpfile();
    size_t n = strlen(input);
    bool ok = f && fwrite(input, 1, n, f) == n && fflush(f) == 0 && fseek(f, 0, SEEK_SET) == 0;
    s->fd[0] = ok ? fcntl(fileno(f), F_DUPFD_CLOEXEC, 3) : -1;
    tl_status st =
        s->fd[0] >= 0 ? TL_OK : tl_file_fail("write", "temporary file for a child's input", errno, e);
    if (f) fclose(f);
    return st;
}

static tl_status open_output(streams *s, int i, const tl_child_stream *spec, capture *cap, tl_err *e) {
    switch (spec->to) {
    case TL_TO_INHERIT:
        s->fd[i] = i;
        return TL_OK;
    case TL_TO_NULL:
        s->fd[i] = open("/dev/null", O_WRONLY | O_CLOEXEC);
        break;
    case TL_TO_FILE:
        s->fd[i] = open(spec->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
        break;
    case TL_TO_CAPTURE: {
        int p[2];
        if (!os_pipe(p)) return tl_fail(e, TL_IO, "cannot make a pipe: %s", strerror(errno));
        cap->fd = p[0];
        tl_buf_init(&cap->kept, spec->limit ? spec->limit : CAPTURE_DEFAULT);
        s->fd[i] = p[1];
        break;
    }
    }
    s->ours[i] = s->fd[i] >= 0;
    return s->ours[i] ? TL_OK
                      : tl_file_fail("open", spec->to == TL_TO_FILE ? spec->path : "/dev/null", errno, e);
}

static tl_status open_streams(streams *s, tl_child *c, const tl_child_spec *spec, tl_err *e) {
    tl_status st = TL_OK;
    TRY(open_input(s, spec->input, e));
    TRY(open_output(s, 1, &spec->out, &c->cap[0], e));
    bool shared =
        spec->out.to == TL_TO_FILE && spec->err.to == TL_TO_FILE && tl_str_eq(spec->out.path, spec->err.path);
    if (shared)
        s->fd[2] = s->fd[1];
    else
        TRY(open_output(s, 2, &spec->err, &c->cap[1], e));
out:
    return st;
}

/* ---- the thread that reads captured streams ---- */

static void keep(tl_child *c, capture *cap, const char *p, size_t n) {
    tl_mutex_lock(c->lock);
    size_t room = cap->kept.max - cap->kept.len;
    cap->total += n;
    tl_buf_add(&cap->kept, p, n < room ? n : room);
    tl_mutex_unlock(c->lock);
}

static void *read_captures(void *arg) {
    tl_child *c = arg;
    char *block = tl_xalloc(CAPTURE_BLOCK);
    unsigned last_reads = 0;
    for (bool stop = false; !stop && (c->cap[0].fd >= 0 || c->cap[1].fd >= 0);) {
        struct pollfd p[3] = {{.fd = c->cap[0].fd, .events = POLLIN},
                              {.fd = c->cap[1].fd, .events = POLLIN},
                              {.fd = c->stop_read_fd, .events = POLLIN}};
        if (poll(p, 3, -1) < 0) {
            if (errno == EINTR) continue;
            break;
        }
        for (int i = 0; i < 2; i++) {
            if (!p[i].revents) continue;
            ssize_t n = read(c->cap[i].fd, block, CAPTURE_BLOCK);
            if (n > 0)
                keep(c, &c->cap[i], block, (size_t)n);
            else if (n == 0 || errno != EINTR) {
                close(c->cap[i].fd);
                c->cap[i].fd = -1;
            }
        }
        /* Asked to stop: whatever is in the pipes already is still taken, then it ends, also when somebody
         * who escaped the supervisor goes on writing. */
        if (p[2].revents) last_reads++;
        stop = p[2].revents && ((!p[0].revents && !p[1].revents) || last_reads > LAST_READS_MAX);
    }
    free(block);
    return NULL;
}

static tl_status start_reader(tl_child *c, tl_err *e) {
    if (c->cap[0].fd < 0 && c->cap[1].fd < 0) return TL_OK;
    int p[2];
    if (!os_pipe(p)) return tl_fail(e, TL_IO, "cannot make a pipe: %s", strerror(errno));
    c->stop_read_fd = p[0];
    c->stop_fd = p[1];
    return tl_thread_start(&c->reader, read_captures, c, e);
}

static void stop_reader(tl_child *c) {
    tl_fd_close(c->stop_fd);
    c->stop_fd = -1;
    tl_thread_join(c->reader);
    c->reader = NULL;
    tl_fd_close(c->stop_read_fd);
    c->stop_read_fd = -1;
}

/* ---- start ---- */

static bool read_all(int fd, void *p, size_t n) {
    char *at = p;
    while (n > 0) {
        ssize_t got = read(fd, at, n);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += got;
        n -= (size_t)got;
    }
    return true;
}

static tl_status explain(const os_exec_failure *f, const os_child_plan *p, tl_err *e) {
    const char *why = strerror(f->errno_value);
    switch ((os_stage)f->stage) {
    case OS_STAGE_FORK:
        tl_fail(e, TL_IO, "cannot start '%s': no more processes: %s", p->path, why);
        tl_remedy(e, "raise the limit of processes (ulimit -u), or end other programs");
        return TL_IO;
    case OS_STAGE_LIMIT:
        return tl_fail(e, TL_IO, "cannot set the resource limits of '%s': %s", p->path, why);
    case OS_STAGE_CWD:
        return tl_fail(e, TL_NOT_FOUND, "cannot start '%s' in folder '%s': %s", p->path, p->cwd, why);
    case OS_STAGE_STREAM:
        return tl_fail(e, TL_IO, "cannot connect the streams of '%s': %s", p->path, why);
    case OS_STAGE_EXEC:
        break;
    }
    if (f->errno_value == ENOENT) {
        tl_fail(e, TL_MISSING, "cannot start '%s': its interpreter (first line) or loader does not exist",
                p->path);
        tl_remedy(e, "install what the program needs, or use one built for this system");
        return TL_MISSING;
    }
    if (f->errno_value == ENOEXEC) {
        tl_fail(e, TL_MISSING, "cannot start '%s': not a program of this system", p->path);
        tl_remedy(
            e, "a script needs a first line such as #!/bin/sh; a program must be built for this processor");
        return TL_MISSING;
    }
    return tl_fail(e, TL_IO, "cannot start '%s': %s", p->path, why);
}

static tl_status fork_supervisor(tl_child *c, os_child_plan *plan, tl_err *e) {
    int exec_p[2] = {-1, -1}, life_p[2] = {-1, -1}, report_p[2] = {-1, -1};
    tl_status st = TL_OK;
    if (!os_pipe(exec_p) || !os_pipe(life_p) || !os_pipe(report_p)) {
        st = tl_fail(e, TL_IO, "cannot make a pipe: %s", strerror(errno));
        goto out;
    }
    plan->exec_fd = exec_p[1];
    plan->life_fd = life_p[0];
    plan->report_fd = report_p[1];
    sigset_t old;
    os_block_signals(&old); /* no handler of ours may run in the fork */
    c->supervisor = fork();
    if (c->supervisor == 0) {
        /* First of all: with these open it would be kept alive by itself. */
        close(life_p[1]);
        close(report_p[0]);
        os_supervise(plan);
    }
    int fork_errno = errno;
    os_restore_signals(&old);
    tl_fd_close(exec_p[1]);
    exec_p[1] = -1;
    tl_fd_close(report_p[1]);
    report_p[1] = -1;
    os_exec_failure f = {.stage = OS_STAGE_FORK, .errno_value = fork_errno};
    if (c->supervisor < 0 || read_all(exec_p[0], &f, sizeof f)) {
        st = explain(&f, plan, e);
        goto out;
    }
    if (!read_all(report_p[0], &c->pid, sizeof c->pid)) {
        st = tl_fail(e, TL_IO, "cannot start '%s': its supervisor was killed", plan->path);
        goto out;
    }
    c->life_fd = life_p[1];
    c->report_fd = report_p[0];
    life_p[1] = report_p[0] = -1;
out:
    for (int i = 0; i < 2; i++) {
        tl_fd_close(exec_p[i]);
        tl_fd_close(life_p[i]);
        tl_fd_close(report_p[i]);
    }
    return st;
}

tl_status tl_child_spawn(tl_child **out, const tl_child_spec *spec, tl_err *e) {
    tl_status st = TL_OK;
    signal(SIGPIPE, SIG_IGN); /* a supervisor that was killed must not take tally along at the next command */
    tl_child *c = tl_xalloc(sizeof *c);
    c->life_fd = c->report_fd = c->stop_fd = c->stop_read_fd = c->cap[0].fd = c->cap[1].fd = -1;
    c->lock = tl_mutex_new();
    char **env = NULL;
    streams s = {0};
    *out = NULL;
    TRY(find_program(&c->program, spec, e));
    TRY(open_streams(&s, c, spec, e));
    env = build_env(spec);
    os_child_plan plan = {.path = c->program,
                          .argv = (char *const *)(uintptr_t)spec->argv,
                          .env = env,
                          .cwd = spec->cwd,
                          .std = {s.fd[0], s.fd[1], s.fd[2]},
                          .limit_cpu_s = spec->limit_cpu_s,
                          .limit_memory_bytes = spec->limit_memory_bytes,
                          .limit_file_bytes = spec->limit_file_bytes};
    TRY(fork_supervisor(c, &plan, e));
    close_streams(&s); /* before the reader starts: it must see the end of file */
    TRY(start_reader(c, e));
    *out = c;
    c = NULL;
out:
    close_streams(&s);
    free(env);
    tl_child_free(c);
    return st;
}

/* ---- state ---- */

/* Takes the supervisor's report if it comes within `timeout`. */
static bool await_end(tl_child *c, tl_ns timeout) {
    tl_ns start = os_now();
    while (!c->ended && c->report_fd >= 0) {
        tl_ns spent = os_now() - start, left = spent < timeout ? timeout - spent : 0;
        tl_ns slice = left < TL_S ? left : TL_S;
        struct pollfd p = {.fd = c->report_fd, .events = POLLIN};
        int rc = poll(&p, 1, (int)((slice + TL_MS - 1) / TL_MS));
        if (rc > 0) {
            c->lost = !read_all(c->report_fd, &c->report, sizeof c->report);
            c->ended = true;
            if (c->lost) kill(-c->pid, SIGKILL); /* its guard is gone; the program must not stay */
        } else if (left == 0) {
            return false;
        } else if (rc < 0 && tl_signal_pending()) {
            return false; /* the caller may have to end the child now */
        }
    }
    return true;
}

int64_t tl_child_pid(const tl_child *c) {
    return c->pid;
}

bool tl_child_alive(tl_child *c) {
    return !await_end(c, 0);
}

tl_status tl_child_wait(tl_child *c, tl_ns timeout, tl_err *e) {
    if (await_end(c, timeout)) return TL_OK;
    return tl_fail(e, TL_TIMEOUT, "'%s' (process %ld) is still running", c->program, (long)c->pid);
}

int tl_child_exit_code(const tl_child *c) {
    return c->ended && !c->lost ? c->report.code : -1;
}

int tl_child_signal(const tl_child *c) {
    return c->ended && !c->lost ? c->report.signal : 0;
}

const char *tl_child_status_text(tl_child *c) {
    if (tl_child_alive(c))
        snprintf(c->text, sizeof c->text, "running");
    else if (c->lost)
        snprintf(c->text, sizeof c->text, "unknown: its supervisor was killed");
    else if (c->report.signal)
        snprintf(c->text, sizeof c->text, "killed by signal %d (%s)", c->report.signal,
                 strsignal(c->report.signal));
    else
        snprintf(c->text, sizeof c->text, "exit code %d", c->report.code);
    return c->text;
}

uint64_t tl_child_captured(tl_buf *out, tl_child *c, bool of_stderr) {
    capture *cap = &c->cap[of_stderr];
    tl_mutex_lock(c->lock);
    if (out && cap->kept.p) tl_buf_add(out, cap->kept.p, cap->kept.len);
    uint64_t total = cap->total;
    tl_mutex_unlock(c->lock);
    return total;
}

/* ---- end ---- */

static void command(tl_child *c, char what) {
    ssize_t n;
    do n = write(c->life_fd, &what, 1);
    while (n < 0 && errno == EINTR); /* EPIPE: the supervisor has gone, which await_end notices */
}

void tl_child_stop(tl_child *c, tl_ns grace) {
    if (!c || c->life_fd < 0) return;
    if (!await_end(c, 0)) {
        command(c, 'T');
        tl_ns end = os_now() + grace;
        for (tl_ns now = os_now(); now < end && !await_end(c, end - now); now = os_now()) {
        }
    }
    command(c, 'K');
    while (!c->ended) await_end(c, TL_S);
    close(c->life_fd);
    c->life_fd = -1;
    while (waitpid(c->supervisor, NULL, 0) < 0 && errno == EINTR) {
    }
    close(c->report_fd);
    c->report_fd = -1;
    stop_reader(c);
}

void tl_child_free(tl_child *c) {
    if (!c) return;
    if (c->life_fd >= 0)
        tl_child_stop(c, 0);
    else if (c->supervisor > 0 && c->pid == 0)
        while (waitpid(c->supervisor, NULL, 0) < 0 && errno == EINTR) {
        } /* it failed to start: pipes are closed */
    stop_reader(c);
    for (int i = 0; i < 2; i++) {
        tl_fd_close(c->cap[i].fd);
        tl_buf_free(&c->cap[i].kept);
    }
    tl_mutex_free(c->lock);
    free(c->program);
    free(c);
}

/* ---- run to the end ---- */

void tl_child_result_free(tl_child_result *r) {
    tl_buf_free(&r->out);
    tl_buf_free(&r->err);
}

tl_status tl_child_run(tl_child_result *out, const tl_child_spec *spec, tl_ns timeout, tl_err *e) {
    memset(out, 0, sizeof *out);
    tl_buf_init(&out->out, 0);
    tl_buf_init(&out->err, 0);
    tl_child_spec s = *spec;
    if (s.out.to == TL_TO_INHERIT) s.out.to = TL_TO_CAPTURE;
    if (s.err.to == TL_TO_INHERIT) s.err.to = TL_TO_CAPTURE;
    int before = tl_signal_pending();
    tl_ns start = os_now();
    tl_child *c;
    tl_status st = tl_child_spawn(&c, &s, e);
    if (st != TL_OK) return st;
    bool cancelled = false;
    while (!cancelled && os_now() - start < timeout) {
        tl_ns left = timeout - (os_now() - start);
        if (await_end(c, left < 100 * TL_MS ? left : 100 * TL_MS))
            break; /* short: a signal may go to another thread */
        cancelled = tl_signal_pending() != before;
    }
    out->timed_out = !cancelled && tl_child_alive(c);
    tl_child_stop(c, out->timed_out || cancelled ? TL_S : 0);
    out->took = os_now() - start;
    out->exit_code = tl_child_exit_code(c);
    out->signal = tl_child_signal(c);
    out->out_bytes = tl_child_captured(&out->out, c, false);
    out->err_bytes = tl_child_captured(&out->err, c, true);
    if (cancelled)
        st = tl_fail(e, TL_CANCELLED, "'%s' was ended: tally got %s", c->program,
                     tl_signal_name(tl_signal_pending()));
    tl_child_free(c);
    return st;
}
