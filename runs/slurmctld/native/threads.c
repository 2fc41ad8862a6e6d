/* Turns: a thread that would wait in the kernel gives its turn to another one, and goes on when it gets the turn again.

   Locks are taken by the real functions, but never waited for by them. Conditions and sleeps exist here only. A thread
   without a turn, such as the handler of a signal, calls the real functions. */
#include "preload.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>

struct shared *S;
char clock_name[64];
__thread int me = -1;
static int own; /* number of this process */
static int tied; /* whether this process ends with its parent */
static volatile int waiting; /* threads of this process that wait for locks, conditions or other threads */
static int child; /* entry of the child that is about to be forked */

/* -- turns --------------------------------------------------------------------------------------------------------- */
/* Return whether this thread has the turn: only then may it wait in virtual time. */
int has_turn(void) { return S && me >= 0 && S->holder == me; }
/* Note that descriptors or processes have changed, so that threads that wait for these look again. */
void changed(void) {
    if (S) __atomic_fetch_add(&S->changes, 1, __ATOMIC_SEQ_CST);
}
/* Wait until this thread has the turn; return whether a signal's handler ran in the meantime. */
static int await_turn(int interruptible) {
    static const struct timespec ages = {1 << 30, 0}; /* with a limit, the kernel tells of signals after SA_RESTART, too */
    struct thread *t = &S->thread[me];
    int interrupted = 0;
    while (!__atomic_exchange_n(&t->word, 0, __ATOMIC_SEQ_CST))
        if (syscall(SYS_futex, &t->word, FUTEX_WAIT, 0, &ages, 0, 0) && errno == EINTR && interruptible) {
            t->order = next_order(S);
            if (__sync_bool_compare_and_swap(&t->state, WAITS, READY)) interrupted = 1;
        }
    return interrupted;
}
static int give_and_wait(struct thread *t, uint32_t state, int interruptible) {
    int error = errno, interrupted = 0;
    t->why = WOKEN;
    t->order = next_order(S);
    __atomic_store_n(&t->state, state, __ATOMIC_SEQ_CST);
    int one = next_thread(S);
    if (one != me) {
        give_turn(S, one);
        interrupted = await_turn(interruptible);
    }
    errno = error;
    return interrupted ? INTERRUPTED : t->why;
}
/* Wait until another thread of this process wakes the waiters of `place`, or until the deadline; return why it goes on. */
int wait_for(uint32_t kind, const volatile void *place, int64_t deadline) {
    struct thread *t = &S->thread[me];
    t->kind = kind;
    t->place = (uintptr_t)place;
    t->deadline = deadline;
    t->looks = 0;
    __atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
    int why = give_and_wait(t, WAITS, kind >= SLEEP);
    __atomic_fetch_sub(&waiting, 1, __ATOMIC_SEQ_CST);
    return why;
}
/* Wait until the caller has to look again; `seen` is the value of S->changes before it looked last. */
int wait_and_look(uint32_t kind, int64_t deadline, uint64_t seen) {
    struct thread *t = &S->thread[me];
    t->kind = kind;
    t->place = 0;
    t->deadline = deadline;
    t->seen = seen;
    t->looks = 1;
    int why = give_and_wait(t, WAITS, 1);
    pthread_testcancel();
    return why;
}
/* Give the turn away in order to sleep in the kernel until a signal comes. */
void go_outside(void) {
    S->thread[me].why = WOKEN;
    __atomic_store_n(&S->thread[me].state, OUTSIDE, __ATOMIC_SEQ_CST);
    give_turn(S, next_thread(S));
}
/* Wait for the turn after that. */
void come_back(void) {
    int error = errno;
    S->thread[me].order = next_order(S);
    __atomic_store_n(&S->thread[me].state, READY, __ATOMIC_SEQ_CST);
    await_turn(0);
    errno = error;
}
/* Make threads of this process that wait for `place` READY: the one that waits longest, or all. */
static void wake(uint32_t kind, const volatile void *place, int all) {
    while (waiting) {
        struct thread *first = 0;
        for (uint32_t i = 0; i < S->top; i++) {
            struct thread *t = &S->thread[i];
            if (t->state == WAITS && t->pid == own && t->kind == kind && t->place == (uintptr_t)place && (!first || t->order < first->order)) first = t;
        }
        if (!first) return;
        first->order = next_order(S);
        if (__sync_bool_compare_and_swap(&first->state, WAITS, READY) && !all) return;
    }
}
int64_t in_time(const struct timespec *t) {
    return t->tv_sec > NEVER / SECOND - 1 ? NEVER : t->tv_sec * SECOND + t->tv_nsec;
}

/* -- this process ---------------------------------------------------------------------------------------------------- */
static void fail(const char *text) {
    syscall(SYS_write, 2, text, strlen(text));
    syscall(SYS_exit_group, 70);
}
static int enter(int pid) {
    int place = enter_thread(S, pid);
    if (place < 0) fail("pipistrelle: too many threads in virtual time\n");
    return place;
}
/* In a forked child: wait for its turn. The parent has entered it. */
static void forked(void) {
    if (!S) return;
    me = child;
    if (me < 0) { /* forked by a handler of a signal */
        S = 0;
        return;
    }
    own = getpid();
    waiting = 0;
    child = -1;
    S->thread[me].pid = S->thread[me].tid = own;
    S->thread[me].handle = (uint64_t)pthread_self();
    if (tied) prctl(PR_SET_PDEATHSIG, SIGKILL);
    await_turn(0);
}
/* Find this process among the threads: whoever started it enters it. After exec(), it still has the turn. */
static int find_me(void) {
    const struct timespec pause = {0, 50000};
    for (int round = 0; round < 200000; round++) {
        int holder = S->holder;
        if (holder >= 0 && S->thread[holder].pid == own && S->thread[holder].handle) {
            for (uint32_t i = 0; i < S->top; i++)
                if ((int)i != holder && S->thread[i].pid == own) S->thread[i].state = FREE;
            return holder;
        }
        for (uint32_t i = 0; i < S->top; i++)
            if (S->thread[i].pid == own && (S->thread[i].state == READY || S->thread[i].state == RUNS)) {
                me = i;
                await_turn(0);
                return i;
            }
        syscall(SYS_nanosleep, &pause, 0);
    }
    fail("pipistrelle: a process in virtual time was started in an unknown way\n");
    return -1;
}
__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PIPISTRELLE_CLOCK");
    if (!path) return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return;
    void *memory = mmap(0, sizeof *S, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (memory == MAP_FAILED) return;
    struct stat file;
    if (stat(path, &file)) return;
    snprintf(clock_name, sizeof clock_name, "pipistrelle-%lx-%lx", (long)file.st_dev, (long)file.st_ino);
    S = memory;
    own = getpid();
    child = -1;
    tied = getenv("PIPISTRELLE_TIED") != 0;
    if (tied) prctl(PR_SET_PDEATHSIG, SIGKILL);
    me = find_me();
    S->thread[me].tid = own;
    S->thread[me].handle = (uint64_t)pthread_self();
    pthread_atfork(0, 0, forked);
}
/* Give the turn away for the last time. The conductor waits for the end of the process. */
__attribute__((destructor)) static void leave(void) {
    if (!has_turn()) return;
    for (uint32_t i = 0; i < S->top; i++)
        if (S->thread[i].pid == own) S->thread[i].state = FREE;
    me = -1;
    S->leaving = own;
    give_turn(S, CONDUCTOR);
}
void _exit(int code) {
    leave();
    for (;;) syscall(SYS_exit_group, code);
}
void _Exit(int code) { _exit(code); }
pid_t fork(void) {
    REAL(fork);
    if (!has_turn()) return real();
    int place = child = enter(0);
    pid_t pid = real();
    if (pid == 0) return 0;
    child = -1;
    if (pid > 0)
        S->thread[place].pid = S->thread[place].tid = pid;
    else
        S->thread[place].state = FREE;
    return pid;
}
pid_t vfork(void) { return fork(); }
int HIDDEN enter_process(int pid) { return enter(pid); }

/* -- threads --------------------------------------------------------------------------------------------------------- */
struct beginning {
    void *(*function)(void *);
    void *argument;
    int place;
};
static void end_thread(void *unused) {
    (void)unused;
    int turn = has_turn();
    struct thread *t = &S->thread[me];
    wake(JOIN, (void *)(uintptr_t)t->handle, 1);
    __atomic_store_n(&t->state, FREE, __ATOMIC_SEQ_CST);
    me = -1;
    if (turn) give_turn(S, next_thread(S));
}
static void *begin_thread(void *given) {
    struct beginning b = *(struct beginning *)given;
    void *result;
    me = b.place;
    S->thread[me].tid = syscall(SYS_gettid);
    await_turn(0);
    free(given);
    pthread_cleanup_push(end_thread, 0);
    result = b.function(b.argument);
    pthread_cleanup_pop(1);
    return result;
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
    REAL(pthread_create);
    struct beginning *b = has_turn() ? malloc(sizeof *b) : 0;
    if (!b) return real(t, a, f, x);
    int place = enter(own);
    *b = (struct beginning){f, x, place};
    int result = real(t, a, begin_thread, b);
    if (result) {
        S->thread[place].state = FREE;
        free(b);
    } else
        S->thread[place].handle = (uint64_t)*t;
    return result;
}
static struct thread *find_thread(pthread_t t) {
    for (uint32_t i = 0; i < S->top; i++)
        if (S->thread[i].state != FREE && S->thread[i].pid == own && S->thread[i].handle == (uint64_t)t) return &S->thread[i];
    return 0;
}
int pthread_join(pthread_t t, void **result) {
    REAL(pthread_join);
    while (has_turn() && find_thread(t)) {
        wait_for(JOIN, (void *)(uintptr_t)t, NEVER);
        pthread_testcancel();
    }
    return real(t, result);
}
int pthread_cancel(pthread_t t) {
    REAL(pthread_cancel);
    int result = real(t);
    struct thread *other = has_turn() ? find_thread(t) : 0;
    if (other && other->kind >= COND) {
        other->order = next_order(S);
        __sync_bool_compare_and_swap(&other->state, WAITS, READY);
    }
    return result;
}
int sched_yield(void) {
    REAL(sched_yield);
    if (!has_turn()) return real();
    count_poll();
    give_and_wait(&S->thread[me], READY, 0);
    return 0;
}

/* -- locks ----------------------------------------------------------------------------------------------------------- */
/* Try to take a lock, and wait until it is unlocked, until this succeeds or fails for good. */
#define TAKE(kind, lock, try, deadline) \
    int result; \
    while ((result = try(lock)) == EBUSY) \
        if (wait_for(kind, lock, deadline) == TIMEOUT) return ETIMEDOUT; \
    return result

int pthread_mutex_lock(pthread_mutex_t *m) {
    REAL(pthread_mutex_lock);
    int checks = (m->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK;
    if (!has_turn() || (checks && m->__data.__owner == S->thread[me].tid)) return real(m);
    TAKE(MUTEX, m, pthread_mutex_trylock, NEVER);
}
int pthread_mutex_timedlock(pthread_mutex_t *m, const struct timespec *t) {
    REAL(pthread_mutex_timedlock);
    if (!has_turn()) return real(m, t);
    TAKE(MUTEX, m, pthread_mutex_trylock, in_time(t));
}
int pthread_mutex_unlock(pthread_mutex_t *m) {
    REAL(pthread_mutex_unlock);
    int result = real(m);
    if (S && waiting) wake(MUTEX, m, 0);
    return result;
}
int pthread_rwlock_rdlock(pthread_rwlock_t *l) {
    REAL(pthread_rwlock_rdlock);
    if (!has_turn()) return real(l);
    TAKE(LOCK, l, pthread_rwlock_tryrdlock, NEVER);
}
int pthread_rwlock_wrlock(pthread_rwlock_t *l) {
    REAL(pthread_rwlock_wrlock);
    if (!has_turn()) return real(l);
    TAKE(LOCK, l, pthread_rwlock_trywrlock, NEVER);
}
int pthread_rwlock_timedrdlock(pthread_rwlock_t *l, const struct timespec *t) {
    REAL(pthread_rwlock_timedrdlock);
    if (!has_turn()) return real(l, t);
    TAKE(LOCK, l, pthread_rwlock_tryrdlock, in_time(t));
}
int pthread_rwlock_timedwrlock(pthread_rwlock_t *l, const struct timespec *t) {
    REAL(pthread_rwlock_timedwrlock);
    if (!has_turn()) return real(l, t);
    TAKE(LOCK, l, pthread_rwlock_trywrlock, in_time(t));
}
int pthread_rwlock_unlock(pthread_rwlock_t *l) {
    REAL(pthread_rwlock_unlock);
    int result = real(l);
    if (S && waiting) wake(LOCK, l, 1);
    return result;
}

/* -- conditions and semaphores --------------------------------------------------------------------------------------- */
static int wait_condition(pthread_cond_t *c, pthread_mutex_t *m, int64_t deadline) {
    int result = pthread_mutex_unlock(m);
    if (result) return result;
    int why = wait_for(COND, c, deadline);
    pthread_mutex_lock(m);
    pthread_testcancel();
    return why == TIMEOUT ? ETIMEDOUT : 0;
}
/* Conditions have two versions of each function; the older one is not meant. */
#define NEWER(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2"); \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
    NEWER(pthread_cond_wait);
    return has_turn() ? wait_condition(c, m, NEVER) : real(c, m);
}
int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t) {
    NEWER(pthread_cond_timedwait);
    return has_turn() ? wait_condition(c, m, in_time(t)) : real(c, m, t);
}
int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *t) {
    REAL(pthread_cond_clockwait);
    return has_turn() ? wait_condition(c, m, in_time(t)) : real(c, m, clock, t);
}
int pthread_cond_signal(pthread_cond_t *c) {
    NEWER(pthread_cond_signal);
    if (S && waiting) wake(COND, c, 0);
    return real(c);
}
int pthread_cond_broadcast(pthread_cond_t *c) {
    NEWER(pthread_cond_broadcast);
    if (S && waiting) wake(COND, c, 1);
    return real(c);
}
static int take_semaphore(sem_t *s, int64_t deadline) {
    for (;;) {
        uint64_t seen = S->changes;
        if (!sem_trywait(s)) return 0;
        if (errno != EAGAIN) return -1;
        int why = wait_and_look(FILES, deadline, seen);
        if (why == TIMEOUT || why == INTERRUPTED) return errno = why == TIMEOUT ? ETIMEDOUT : EINTR, -1;
    }
}
int sem_wait(sem_t *s) {
    REAL(sem_wait);
    return has_turn() ? take_semaphore(s, NEVER) : real(s);
}
int sem_timedwait(sem_t *s, const struct timespec *t) {
    REAL(sem_timedwait);
    return has_turn() ? take_semaphore(s, in_time(t)) : real(s, t);
}
int sem_clockwait(sem_t *s, clockid_t clock, const struct timespec *t) {
    REAL(sem_clockwait);
    return has_turn() ? take_semaphore(s, in_time(t)) : real(s, clock, t);
}
int sem_post(sem_t *s) {
    REAL(sem_post);
    int result = real(s);
    changed();
    return result;
}
