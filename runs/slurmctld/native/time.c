/* The clock, sleeps and signals in virtual time. */
#include "preload.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* Computations take no virtual time. So a loop that ends only when time has passed, such as slurmctld's backfill with its
   limits of time, would never end. Count how often this thread polls: after POLLS within WINDOW, it sleeps at each poll. */
enum { POLLS = 100000 };
#define WINDOW (60 * SECOND)
#define STEP (SECOND / 100)
void count_poll(void) {
    static __thread int64_t since;
    static __thread uint32_t polls;
    if (!has_turn()) return;
    if (S->now - since > WINDOW) {
        since = S->now;
        polls = 0;
    }
    if (++polls > POLLS) wait_for(SLEEP, 0, S->now + STEP);
}
int clock_gettime(clockid_t clock, struct timespec *t) {
    if (!S || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE && clock != CLOCK_MONOTONIC &&
               clock != CLOCK_MONOTONIC_COARSE && clock != CLOCK_MONOTONIC_RAW && clock != CLOCK_BOOTTIME))
        return syscall(SYS_clock_gettime, clock, t);
    count_poll();
    int64_t now = S->now;
    t->tv_sec = now / SECOND;
    t->tv_nsec = now % SECOND;
    return 0;
}
int gettimeofday(struct timeval *t, void *zone) {
    struct timespec s;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &s);
    if (t) {
        t->tv_sec = s.tv_sec;
        t->tv_usec = s.tv_nsec / 1000;
    }
    return 0;
}
time_t time(time_t *p) {
    struct timespec s;
    clock_gettime(CLOCK_REALTIME, &s);
    if (p) *p = s.tv_sec;
    return s.tv_sec;
}

/* -- sleeps ---------------------------------------------------------------------------------------------------------- */
/* Sleep until the deadline; return 0, or EINTR after a signal. */
static int sleep_until(int64_t deadline) {
    if (S->now >= deadline) return 0;
    int why = wait_for(SLEEP, 0, deadline);
    pthread_testcancel();
    return why == INTERRUPTED ? EINTR : 0;
}
static int sleep_for(int64_t length, struct timespec *rest) {
    int64_t deadline = length > NEVER - S->now ? NEVER : S->now + length;
    int result = sleep_until(deadline);
    if (result && rest) {
        int64_t left = deadline > S->now ? deadline - S->now : 0;
        *rest = (struct timespec){left / SECOND, left % SECOND};
    }
    return result;
}
int nanosleep(const struct timespec *t, struct timespec *rest) {
    if (!has_turn()) return syscall(SYS_nanosleep, t, rest);
    int result = sleep_for(in_time(t), rest);
    if (!result) return 0;
    errno = result;
    return -1;
}
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *rest) {
    if (!has_turn()) return syscall(SYS_clock_nanosleep, clock, flags, t, rest) ? errno : 0;
    return flags & TIMER_ABSTIME ? sleep_until(in_time(t)) : sleep_for(in_time(t), rest);
}
unsigned sleep(unsigned seconds) {
    struct timespec t = {seconds, 0}, rest = {0, 0};
    return nanosleep(&t, &rest) ? rest.tv_sec + (rest.tv_nsec > 0) : 0;
}
int usleep(useconds_t us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    return nanosleep(&t, 0);
}

/* -- signals --------------------------------------------------------------------------------------------------------- */
/* Tell the conductor of a signal: it waits until the handlers have ended. */
static int sent(int result) {
    if (S && !result) {
        __atomic_fetch_add(&S->signals, 1, __ATOMIC_SEQ_CST);
        changed();
    }
    return result;
}
int kill(pid_t p, int g) {
    REAL(kill);
    return g ? sent(real(p, g)) : real(p, g);
}
int killpg(pid_t p, int g) {
    REAL(killpg);
    return g ? sent(real(p, g)) : real(p, g);
}
int pthread_kill(pthread_t t, int g) {
    REAL(pthread_kill);
    return g ? sent(real(t, g)) : real(t, g);
}
int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *t) {
    static const struct timespec none;
    REAL(sigtimedwait);
    if (!has_turn()) return real(set, info, t);
    int64_t length = t ? in_time(t) : NEVER, deadline = length > NEVER - S->now ? NEVER : S->now + length;
    for (;;) {
        uint64_t seen = S->changes;
        int found = real(set, info, &none);
        if (found >= 0 || errno != EAGAIN || length == 0) return found;
        int why = wait_and_look(SIGNAL, deadline, seen);
        if (why == TIMEOUT || why == INTERRUPTED) return errno = why == TIMEOUT ? EAGAIN : EINTR, -1;
    }
}
int sigwaitinfo(const sigset_t *set, siginfo_t *info) {
    REAL(sigwaitinfo);
    return has_turn() ? sigtimedwait(set, info, 0) : real(set, info);
}
int sigwait(const sigset_t *set, int *number) {
    REAL(sigwait);
    if (!has_turn()) return real(set, number);
    int found;
    while ((found = sigtimedwait(set, 0, 0)) < 0)
        if (errno != EINTR) return errno;
    *number = found;
    return 0;
}
int sigsuspend(const sigset_t *set) {
    REAL(sigsuspend);
    if (!has_turn()) return real(set);
    go_outside();
    int result = real(set);
    come_back();
    return result;
}
int pause(void) {
    REAL(pause);
    if (!has_turn()) return real();
    go_outside();
    int result = real();
    come_back();
    return result;
}
