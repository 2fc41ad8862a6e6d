/* The conductor: moves the clock in shared memory from deadline to deadline, only while no thread can run.

   conductor FOLDER/FILE, which removes FOLDER at its end; then one command a line on standard input:
     set NS          set the clock before any process begins
     watch PID       a process without the preload that has to be idle, too
     run NS CALLS    move the clock towards NS; stop early when a job began or was struck, or when there have been more
                     calls than CALLS
     ports A B       connections to these ports are calls: whoever gave this command answers them
     enter PID       a process with the preload, which may not have run yet
     until PID NS CALLS   enter PID and move the clock as run does, but only until PID has ended
     settle          wait for calm at the present time
     end PLACE CODE  tell the job at PLACE of the table to end, and wait for calm
   Each command but watch, enter and end is answered by lines "job PLACE STATE ID RESTARTS BEGUN NODES" for news, then
   "now NS CALLS REACHED"; REACHED is 0 if `run` stopped early. "stuck PID TID STATE" says that calm did not come, and ends the conductor. */
#define _GNU_SOURCE
#include "clock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALM_S = 60 }; /* real seconds after which a thread that never sleeps counts as stuck */

static struct shared *S;
static char clock_text[4200]; /* the variable in the environment of each process of this run */
static const char *folder;
static int others[64], count_others, busy_pid, busy_tid;
static char busy_state;
static uint32_t told; /* jobs whose news were reported: states in reported */
static unsigned char reported[JOBS];

static void pause_us(long us) {
    struct timespec t = {0, us * 1000};
    nanosleep(&t, 0);
}
static double real_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
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
        for (uint32_t i = 0; i < S->processes; i++) {
            int pid = S->process[i].pid;
            if (pid > 0 && is_ours(pid)) kill(pid, SIGKILL);
        }
        usleep(2000);
    }
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    _exit(code);
}
static void ended(int number) { finish(128 + number); }
static void wake(volatile uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, 0, 0, 0); }

/* Changes whenever a thread has run: made of the threads' numbers and of how often each has gone to sleep. */
static uint64_t trace;

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

/* 1: a thread of the process can run, 0: all sleep, -1: the process is gone */
static int process_state(int pid) {
    char path[300], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *folder = opendir(path);
    if (!folder) return -1;
    int result = 0, threads = 0, zombies = 0;
    struct dirent *entry;
    while (!result && (entry = readdir(folder))) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/status", entry->d_name);
        int fd = openat(dirfd(folder), path, O_RDONLY);
        if (fd < 0) continue;
        ssize_t n = read(fd, text, sizeof text - 1);
        close(fd);
        if (n <= 0) continue;
        text[n] = 0;
        char *state = strstr(text, "\nState:\t"), *sleeps = strstr(text, "\nvoluntary_ctxt_switches:\t");
        if (!state) continue;
        char letter = state[8];
        if (letter == 'S' && sees_queues && is_queued(dirfd(folder), entry->d_name)) letter = 'R';
        trace = (trace ^ atoi(entry->d_name)) * 0x9E3779B97F4A7C15u;
        if (sleeps) trace = (trace ^ strtoull(sleeps + 26, 0, 10)) * 0x9E3779B97F4A7C15u;
        threads++;
        if (letter == 'Z' || letter == 'X') zombies++;
        if (letter == 'R' || letter == 'D') {
            result = 1;
            busy_pid = pid;
            busy_tid = atoi(entry->d_name);
            busy_state = letter;
        }
    }
    closedir(folder);
    return !result && threads == zombies ? -1 : result;
}
static int any_runs(void) {
    for (int i = 0; i < count_others; i++)
        if (process_state(others[i]) == 1) return 1;
    for (uint32_t i = 0; i < S->processes; i++) {
        int pid = S->process[i].pid;
        if (!pid) continue;
        int state = process_state(pid);
        if (state == 1) return 1;
        if (state < 0) {
            for (uint32_t k = 0; k < S->sleepers; k++)
                if (S->sleeper[k].state > CLAIMED && S->sleeper[k].pid == pid) S->sleeper[k].state = FREE;
            __sync_bool_compare_and_swap(&S->process[i].pid, pid, 0);
        }
    }
    return 0;
}
static int any_woken(void) {
    for (uint32_t i = 0; i < S->sleepers; i++)
        if (S->sleeper[i].state == WOKEN) return 1;
    return 0;
}
/* Wait until nothing runs and each woken thread has left its entry. While acts stays equal to `acts`, looking at `only`
   is enough. Looking at all threads takes time, in which one may wake another and go to sleep. So calm needs two looks
   between which no thread has run. */
static void settle(int only, uint64_t acts) {
    int calm = 0;
    uint64_t quiet = 0, before = 0; /* acts and trace at the first of two looks */
    double limit = 0;
    for (long round = 0;; round++) {
        if (only && S->acts != acts) only = calm = 0;
        trace = 0;
        uint64_t now = S->acts;
        int state = only ? process_state(only) : any_runs();
        if (state < 0) { /* its end woke the parent, without an act */
            only = calm = 0;
            continue;
        }
        if (state || any_woken())
            calm = 0;
        else if (calm && trace == before && now == quiet && S->acts == quiet)
            return;
        else
            calm = 1, before = trace, quiet = now;
        if (round % 64 == 63) {
            if (!limit) limit = real_now() + CALM_S;
            if (real_now() > limit) {
                printf("stuck %d %d %c\n", busy_pid, busy_tid, busy_state);
                fflush(stdout);
                finish(4);
            }
        }
        pause_us(round < 50 ? 10 : 50);
    }
}
/* Wake one sleeper and wait for calm. */
static void wake_one(struct sleeper *s) {
    uint64_t acts = S->acts;
    int32_t tid = s->tid, pid = s->pid;
    uint32_t process = s->process;
    if (__sync_bool_compare_and_swap(&s->state, ASLEEP, WOKEN)) {
        __atomic_store_n(&s->word, 1, __ATOMIC_SEQ_CST);
        wake(&s->word);
        for (int round = 0; round < 200 && S->acts == acts; round++) {
            for (uint32_t i = 0; i < S->sleepers; i++)
                if (S->sleeper[i].state == ASLEEP && S->sleeper[i].tid == tid && S->acts == acts)
                    return; /* the thread sleeps again and woke nobody */
            if (round < 50)
                sched_yield();
            else
                pause_us(5);
        }
    } else if (__sync_bool_compare_and_swap(&s->state, HELPED, WOKEN)) {
        __atomic_fetch_add(&S->process[process].word, 1, __ATOMIC_SEQ_CST);
        wake(&S->process[process].word);
    } else
        return;
    settle(pid, acts);
}
/* Whether something has to be told before more threads are woken. */
static uint32_t seen_news, seen_calls;
static void look(unsigned calls) {
    seen_news = S->news;
    seen_calls = calls;
}
static int any_change(void) { return S->news != seen_news || S->calls != seen_calls; }
/* Wake what is due, and move the clock to the next deadline, at most to `to`: one thread after the other, so that
   threads do not race. Threads with the same deadline wake in the order in which they were created. Return 0 if nothing is due by
   then; the clock is then at `to`. */
static int step(int64_t to) {
    struct sleeper *first = 0;
    for (uint32_t i = 0; i < S->sleepers; i++) {
        struct sleeper *s = &S->sleeper[i];
        if (s->state != ASLEEP && s->state != HELPED) continue;
        if (!first || s->deadline < first->deadline || (s->deadline == first->deadline && s->thread < first->thread)) first = s;
    }
    if (!first || first->deadline > to) {
        if (S->now < to) S->now = to;
        return 0;
    }
    if (S->now < first->deadline) S->now = first->deadline;
    wake_one(first);
    return 1;
}
static int tell_news(void) {
    int any = 0;
    uint32_t jobs = S->jobs < JOBS ? S->jobs : JOBS;
    for (uint32_t i = told; i < jobs; i++) {
        struct job *j = &S->job[i];
        if (j->state == JOB_RUNS && kill(j->pid, 0) && errno == ESRCH) j->state = JOB_STRUCK;
        if (j->state >= JOB_RUNS && j->state != reported[i]) {
            if (j->state == JOB_RUNS || j->state == JOB_STRUCK) {
                printf("job %u %s %u %u %lld %s\n", i, j->state == JOB_RUNS ? "begun" : "struck", j->id, j->restarts, (long long)j->begun, j->nodes);
                any = 1;
            }
            reported[i] = j->state;
        }
        if (i == told && j->state > JOB_RUNS) told++;
    }
    return any;
}
static void enter(int pid) {
    for (int i = 0; i < PROCESSES; i++)
        if (S->process[i].pid == pid) return;
    for (int i = 0; i < PROCESSES; i++)
        if (__sync_bool_compare_and_swap(&S->process[i].pid, 0, pid)) {
            uint32_t top = S->processes;
            while (top < (uint32_t)i + 1 && !__sync_bool_compare_and_swap(&S->processes, top, i + 1)) top = S->processes;
            return;
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
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        long long value;
        unsigned place, last;
        int code;
        if (sscanf(line, "set %lld", &value) == 1)
            S->now = value, answer(1);
        else if (sscanf(line, "ports %u %u", &place, &last) == 2)
            S->first_port = place, S->last_port = last;
        else if (sscanf(line, "enter %u", &place) == 1)
            enter(place);
        else if (sscanf(line, "watch %lld", &value) == 1 && count_others < 64)
            others[count_others++] = value;
        else if (sscanf(line, "end %u %d", &place, &code) == 2 && place < JOBS) {
            struct job *j = &S->job[place];
            if (__sync_bool_compare_and_swap(&j->state, JOB_RUNS, JOB_TOLD)) {
                j->code = code;
                __atomic_store_n(&j->word, 1, __ATOMIC_SEQ_CST);
                wake(&j->word);
            }
            settle(0, 0);
        } else if (!strncmp(line, "settle", 6)) {
            settle(0, 0);
            tell_news();
            answer(1);
        } else if (sscanf(line, "until %u %lld %u", &place, &value, &last) == 3) {
            look(last);
            enter(place);
            settle(0, 0);
            while (S->now < value && !any_change() && process_state(place) >= 0) step(value);
            tell_news();
            answer(1);
        } else if (sscanf(line, "run %lld %u", &value, &last) == 2) {
            look(last);
            settle(0, 0);
            int reached = 0;
            if (!tell_news())
                while (!any_change() && !reached) reached = !step(value);
            tell_news();
            answer(reached);
        }
    }
    finish(0);
}
