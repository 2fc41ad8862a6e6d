/* The conductor: lets threads run in turns, and the clock pass, up to a time that a command gives.

   conductor FOLDER/FILE, which removes FOLDER at its end; then one command a line on standard input:
     set NS          set the clock before any process begins
     ports A B       connections to these ports are calls: whoever gave this command answers them
     enter PID       a process with the preload, which was just started
     run NS CALLS    let time pass until NS; stop early when there have been other than CALLS calls, and all threads wait
     until PID NS CALLS   enter PID and do as run, but only until PID has ended
     settle          let all threads run at the present time until they wait
     hold PID NS     let the first thread of a process wait longer for its deadline, by NS
   Each command but ports, enter and hold is answered by a line "now NS CALLS REACHED"; REACHED is 0 if `run` stopped early.
   "stuck PID TID STATE" says that a thread keeps its turn, and ends the conductor. */
#define _GNU_SOURCE
#include "clock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A thread that keeps its turn is stuck after so many looks of LOOK_MS during which it sleeps, or after so much time of
   the processor. Looks come later on a busy computer, so that they allow for more time there. */
enum { LOOK_MS = 50, STUCK_LOOKS = 1200, STUCK_CPU_S = 60 };

static struct shared *S;
static char clock_text[4200]; /* the variable in the environment of each process of this run */
static const char *folder;

static void pause_us(long us) {
    struct timespec t = {0, us * 1000};
    nanosleep(&t, 0);
}
/* Whether a process belongs to this run: its number may have been given to another one. */
static int is_ours(int pid) {
    static char text[1 << 18];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", pid);
    int fd = open(path, O_RDONLY), found = 0;
    if (fd < 0) return 0;
    size_t length = 0;
    for (ssize_t n; length < sizeof text - 1 && (n = read(fd, text + length, sizeof text - 1 - length)) > 0;) length += n;
    close(fd);
    text[length] = 0;
    for (char *at = text; !found && at < text + length; at += strlen(at) + 1) found = !strcmp(at, clock_text);
    return found;
}
static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *at) {
    (void)s, (void)kind, (void)at;
    remove(path);
    return 0;
}
/* End every process of the run and remove the clock's folder. A second round finds what was forked during the first. */
static void finish(int code) {
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < S->top; i++) {
            int pid = S->thread[i].pid; /* of those that have ended, too: their processes may be about to */
            if (pid > 0 && is_ours(pid)) kill(pid, SIGKILL);
        }
        usleep(2000);
    }
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    _exit(code);
}
static void ended(int number) { finish(128 + number); }

/* -- what the kernel knows ----------------------------------------------------------------------------------------- */
/* Whether a thread that seems to sleep waits for a processor: it was interrupted just before it would have looked for
   the last time whether it has to sleep. The kernel names no place in which such a thread sleeps. */
static int is_queued(int folder, const char *thread) {
    char path[64], text[8] = "";
    snprintf(path, sizeof path, "%s/wchan", thread);
    int fd = openat(folder, path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n == 1 && text[0] == '0';
}
static int sees_queues; /* whether this kernel tells where threads sleep */
static void try_queues(void) {
    char thread[16];
    pid_t child = fork();
    if (child == 0)
        for (prctl(PR_SET_PDEATHSIG, SIGKILL);;) pause();
    if (child < 0) return;
    snprintf(thread, sizeof thread, "%d", child);
    int folder = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int round = 0; round < 100 && !sees_queues; round++) {
        sees_queues = folder >= 0 && !is_queued(folder, thread);
        usleep(1000);
    }
    close(folder);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
}


/* Read the state of a thread, its time of the processor (ticks) and its parent; return 0 if it does not exist. */
struct looked {
    char state;
    long ticks, parent;
};
static int look(int pid, int tid, struct looked *found) {
    char path[64], text[1024], *rest;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return 0;
    text[n] = 0;
    long user, system;
    if (!(rest = strrchr(text, ')'))) return 0;
    if (sscanf(rest + 1, " %c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &found->state, &found->parent, &user, &system) != 4) return 0;
    found->ticks = user + system;
    return 1;
}
/* Return whether a process has ended, even if its parent does not know yet. */
static int is_dead(int pid) {
    struct looked one;
    char path[64];
    if (!look(pid, pid, &one)) return 1;
    if (one.state != 'Z' && one.state != 'X') return 0;
    snprintf(path, sizeof path, "/proc/%d/task", pid); /* its other threads may still run */
    DIR *threads = opendir(path);
    if (!threads) return 1;
    int lives = 0;
    for (struct dirent *entry; !lives && (entry = readdir(threads));)
        if (entry->d_name[0] != '.' && atoi(entry->d_name) != pid && look(pid, atoi(entry->d_name), &one)) lives = one.state != 'Z' && one.state != 'X';
    closedir(threads);
    return !lives;
}
static void stuck(int pid, int tid, char state) {
    printf("stuck %d %d %c\n", pid, tid, state);
    fflush(stdout);
    finish(4);
}
static int is_member(int pid) {
    for (uint32_t i = 0; i < S->top; i++)
        if (S->thread[i].state != FREE && S->thread[i].pid == pid) return 1;
    return 0;
}
/* Forget the threads of a process that has ended. Its descriptors are closed, and its parent may get a signal. */
static void forget(int pid) {
    struct looked one;
    for (uint32_t i = 0; i < S->top; i++)
        if (S->thread[i].pid == pid) S->thread[i].state = FREE;
    S->changes++;
    if (look(pid, pid, &one) && is_member(one.parent)) S->signals++;
}
/* Wait until a process that is about to end has ended. */
static void await_end(int pid) {
    int handle = syscall(SYS_pidfd_open, pid, 0);
    struct pollfd one = {handle, POLLIN, 0};
    for (int looks = 0; handle >= 0 && poll(&one, 1, LOOK_MS) == 0 && !is_dead(pid);)
        if (++looks > STUCK_LOOKS) stuck(pid, pid, 'S');
    if (handle >= 0) close(handle);
    while (handle < 0 && !is_dead(pid)) pause_us(20); /* an old kernel */
    forget(pid);
}
/* Wait until no thread handles a signal: none can run, and none has run between two looks. */
static void await_handlers(void) {
    uint64_t before = 0;
    for (long round = 0;; round++) {
        uint64_t trace = 1;
        int busy = 0, pid = 0, tid = 0;
        for (uint32_t i = 0; i < S->top && !busy; i++) {
            struct thread *t = &S->thread[i];
            struct looked one;
            pid = t->pid, tid = t->tid;
            if (t->state == FREE || pid <= 0) continue;
            if (!look(pid, tid, &one) || one.state == 'Z' || one.state == 'X') {
                if (is_dead(pid))
                    forget(pid);
                else if (t->pid == pid && t->tid == tid)
                    t->state = FREE;
                busy = 1;
            } else
                busy = one.state == 'R' || one.state == 'D';
            char path[64];
            snprintf(path, sizeof path, "/proc/%d/task/%d", pid, tid);
            if (!busy && sees_queues && is_queued(AT_FDCWD, path)) busy = 1;
            trace = (trace ^ one.ticks ^ (uint64_t)t->state << 32 ^ i) * 0x9E3779B97F4A7C15u;
        }
        if (!busy && trace == before) break;
        before = busy ? 0 : trace;
        if (round > 50L * STUCK_LOOKS * LOOK_MS) stuck(pid, tid, 'R');
        pause_us(20);
    }
}

/* -- turns --------------------------------------------------------------------------------------------------------- */
static double cpu_spent; /* by threads that kept their turn at the present time (s) */
static int64_t cpu_at;

/* Wait until the turn comes back, or its holder has ended without giving it. */
static void await_turn(void) {
    struct timespec t = {0, LOOK_MS * 1000000L};
    uint64_t turns = 0;
    long ticks = 0;
    for (int looks = 0; !__atomic_exchange_n(&S->word, 0, __ATOMIC_SEQ_CST);) {
        if (!syscall(SYS_futex, &S->word, FUTEX_WAIT, 0, &t, 0, 0) || errno != ETIMEDOUT) continue;
        int holder = S->holder;
        if (holder < 0) continue;
        struct thread *h = &S->thread[holder];
        struct looked one;
        int pid = h->pid, tid = h->tid;
        if (pid <= 0) continue;
        if (!look(pid, tid, &one) || one.state == 'Z' || one.state == 'X') {
            if (S->holder != holder || S->turns != turns) { /* a look later, to be sure */
                turns = S->turns;
                continue;
            }
            if (is_dead(pid))
                forget(pid);
            else
                h->state = FREE;
            S->holder = CONDUCTOR;
            return;
        }
        int same = S->turns == turns;
        if (cpu_at != S->now) cpu_at = S->now, cpu_spent = 0;
        if (same) cpu_spent += (double)(one.ticks - ticks) / sysconf(_SC_CLK_TCK);
        looks = same && one.state == 'S' ? looks + 1 : 0;
        if (looks > STUCK_LOOKS || cpu_spent > STUCK_CPU_S) stuck(pid, tid, one.state);
        turns = S->turns, ticks = one.ticks;
    }
}
/* Let threads run, and time pass, as far as S->limit and S->stop_calls allow; stop when the process `only` has ended. */
static void let_run(int only) {
    S->changes++; /* from outside, too */
    for (;;) {
        if (S->leaving) {
            int pid = S->leaving;
            await_end(pid);
            S->leaving = 0;
        }
        while (S->seen_signals != S->signals) {
            uint32_t signals = S->signals;
            await_handlers();
            S->seen_signals = signals;
        }
        if (only && !is_member(only)) return;
        int next = next_thread(S);
        if (next < 0) {
            if (S->leaving || S->signals != S->seen_signals) continue;
            return;
        }
        give_turn(S, next);
        await_turn();
    }
}
static int enter(int pid) {
    if (enter_thread(S, pid) >= 0) return 1;
    fprintf(stderr, "pipistrelle: too many threads in virtual time\n");
    return 0;
}
static void hold(int pid, int64_t length) {
    for (uint32_t i = 0; i < S->top; i++) {
        struct thread *t = &S->thread[i];
        if (t->state == WAITS && t->pid == pid && t->tid == pid && t->deadline != NEVER) t->deadline += length;
    }
}
static void answer(int reached) {
    printf("now %lld %u %d\n", (long long)S->now, S->calls, reached);
    fflush(stdout);
}
int main(int argc, char **argv) {
    if (argc != 2) return 2;
    folder = dirname(strdup(argv[1]));
    snprintf(clock_text, sizeof clock_text, "PIPISTRELLE_CLOCK=%s", argv[1]);
    prctl(PR_SET_TIMERSLACK, 1000);
    int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *S)) return 1;
    S = mmap(0, sizeof *S, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (S == MAP_FAILED) return 1;
    signal(SIGTERM, ended);
    signal(SIGPIPE, ended);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    try_queues();
    S->holder = CONDUCTOR;
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        long long value;
        unsigned place, last;
        if (sscanf(line, "set %lld", &value) == 1)
            S->now = value, answer(1);
        else if (sscanf(line, "ports %u %u", &place, &last) == 2)
            S->first_port = place, S->last_port = last;
        else if (sscanf(line, "enter %u", &place) == 1) {
            if (!enter(place)) break;
        } else if (sscanf(line, "hold %u %lld", &place, &value) == 2) {
            hold(place, value);
        } else if (!strncmp(line, "settle", 6)) {
            S->limit = INT64_MIN;
            S->stop_calls = S->calls;
            let_run(0);
            answer(1);
        } else if (sscanf(line, "until %u %lld %u", &place, &value, &last) == 3) {
            if (!is_member(place) && !is_dead(place) && !enter(place)) break;
            S->limit = value;
            S->stop_calls = last;
            let_run(place);
            if (is_member(place) && S->calls == last && S->now < value) S->now = value;
            answer(1);
        } else if (sscanf(line, "run %lld %u", &value, &last) == 2) {
            S->limit = value;
            S->stop_calls = last;
            let_run(0);
            int reached = S->calls == last;
            if (reached && S->now < value) S->now = value;
            answer(reached);
        }
    }
    finish(0);
}
