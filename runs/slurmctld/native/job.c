/* A job's process: enters the job in the shared table, then waits until it is told to end or is struck by a signal. */
#define _GNU_SOURCE
#include "clock.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct shared *S;
static struct job *me;

static void struck(int number) {
    if (__sync_bool_compare_and_swap(&me->state, JOB_RUNS, JOB_STRUCK)) __atomic_fetch_add(&S->news, 1, __ATOMIC_SEQ_CST);
    signal(number, SIG_DFL);
    raise(number);
}
int main(void) {
    const char *path = getenv("PIPISTRELLE_CLOCK"), *id = getenv("SLURM_JOB_ID"), *nodes = getenv("SLURM_JOB_NODELIST");
    const char *restarts = getenv("SLURM_RESTART_COUNT");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0 || !id || !nodes) return 70;
    S = mmap(0, sizeof *S, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (S == MAP_FAILED) return 70;
    uint32_t place = __atomic_fetch_add(&S->jobs, 1, __ATOMIC_SEQ_CST);
    if (place >= JOBS || strlen(nodes) >= sizeof me->nodes) return 70;
    me = &S->job[place];
    me->pid = getpid();
    me->id = strtoul(id, 0, 10);
    me->restarts = restarts ? strtoul(restarts, 0, 10) : 0;
    me->begun = S->now;
    strcpy(me->nodes, nodes);
    signal(SIGTERM, struck);
    __atomic_store_n(&me->state, JOB_RUNS, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&S->news, 1, __ATOMIC_SEQ_CST);
    while (!me->word) syscall(SYS_futex, &me->word, FUTEX_WAIT, 0, 0, 0, 0);
    return me->code;
}
