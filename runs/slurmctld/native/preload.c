/* Virtual time for an unmodified program: time, sleeps and timeouts follow the clock in shared memory.

   A sleeping thread enters its deadline in the shared table. The conductor wakes it when the clock reaches the deadline.
   A thread in pthread_cond_timedwait or poll cannot be woken by another process: each process has one helper thread for
   these. It broadcasts the condition, which POSIX allows at any time, or writes to an eventfd.

   Everything that may wake another thread or process is counted in `acts`. While the counter stands still, the
   conductor need not look at the other processes. */
#define _GNU_SOURCE
#include "clock.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static struct shared *S;
static char clock_name[64]; /* the same in all processes of a run */
static int here; /* this process's index in S->process */
static long acts_as = -1; /* number of the user whom this process pretends to be */
static const char *users; /* file of users */
static int tied; /* whether this process ends with its parent */

/* -- records of threads that need the helper --------------------------------------------------------------------- */
struct record {
    struct record *next;
    struct sleeper *sleeper;
    pthread_cond_t *cond;
    int event;
};
static struct record *records;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pid_t helped; /* the process that has a helper thread: a forked child needs its own */

static long futex(volatile uint32_t *word, int op, uint32_t value, const struct timespec *limit) {
    return syscall(SYS_futex, word, op, value, limit, 0, 0);
}
static void act(void) {
    if (S) __atomic_fetch_add(&S->acts, 1, __ATOMIC_SEQ_CST);
}

static int enter(pid_t pid) {
    for (int i = 0; i < PROCESSES; i++) {
        if (S->process[i].pid == pid) return i;
        if (S->process[i].pid == 0 && __sync_bool_compare_and_swap(&S->process[i].pid, 0, pid)) {
            uint32_t top = S->processes;
            while (top < (uint32_t)i + 1 && !__sync_bool_compare_and_swap(&S->processes, top, i + 1)) top = S->processes;
            return i;
        }
    }
    static const char text[] = "pipistrelle: too many processes in virtual time\n";
    syscall(SYS_write, 2, text, sizeof text - 1);
    _exit(70);
}
/* The kernel's numbers of threads wrap around, so each thread has a number of its own. */
static __thread uint32_t number;
static uint32_t next_number(void) { return __atomic_add_fetch(&S->threads, 1, __ATOMIC_SEQ_CST); }
static void forked(void) {
    if (!S) return;
    number = next_number();
    records = 0;
    helped = 0;
    if (tied) prctl(PR_SET_PDEATHSIG, SIGKILL);
    pthread_mutex_init(&guard, 0);
    here = enter(getpid());
    act();
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_timed)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_broadcast)(pthread_cond_t *);
static int (*real_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static int (*real_poll)(struct pollfd *, nfds_t, int);

__attribute__((constructor)) static void begin(void) {
    real_wait = dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
    real_timed = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    real_broadcast = dlvsym(RTLD_NEXT, "pthread_cond_broadcast", "GLIBC_2.3.2");
    if (!real_wait) real_wait = dlsym(RTLD_NEXT, "pthread_cond_wait");
    if (!real_timed) real_timed = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    if (!real_broadcast) real_broadcast = dlsym(RTLD_NEXT, "pthread_cond_broadcast");
    real_create = dlsym(RTLD_NEXT, "pthread_create");
    real_poll = dlsym(RTLD_NEXT, "poll");
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
    const char *uid = getenv("PIPISTRELLE_UID");
    if (uid) acts_as = strtol(uid, 0, 10);
    users = getenv("PIPISTRELLE_USERS");
    tied = getenv("PIPISTRELLE_TIED") != 0;
    if (tied) prctl(PR_SET_PDEATHSIG, SIGKILL);
    here = enter(getpid());
    number = next_number();
    act();
    pthread_atfork(0, 0, forked);
}

/* -- users --------------------------------------------------------------------------------------------------------- */
/* The users of a workload exist in a file of lines NAME:NUMBER only. A program acts as the one that PIPISTRELLE_UID names. */
uid_t getuid(void) { return acts_as >= 0 ? (uid_t)acts_as : (uid_t)syscall(SYS_getuid); }
uid_t geteuid(void) { return acts_as >= 0 ? (uid_t)acts_as : (uid_t)syscall(SYS_geteuid); }
gid_t getgid(void) { return acts_as >= 0 ? (gid_t)acts_as : (gid_t)syscall(SYS_getgid); }
gid_t getegid(void) { return acts_as >= 0 ? (gid_t)acts_as : (gid_t)syscall(SYS_getegid); }
/* Look for a name or, if it is null, a number; put the entry into *p and its text into the buffer. */
static int find_user(const char *name, uid_t uid, struct passwd *p, char *buffer, size_t size) {
    char line[512];
    int found = 0;
    FILE *file = users ? fopen(users, "re") : 0;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *number = strrchr(line, ':');
        if (!number) continue;
        *number++ = 0;
        if (name ? strcmp(line, name) : strtoul(number, 0, 10) != uid) continue;
        if (strlen(line) >= size) break;
        found = 1;
        strcpy(buffer, line);
        *p = (struct passwd){.pw_name = buffer, .pw_passwd = "x", .pw_gecos = "", .pw_dir = "/", .pw_shell = "/bin/sh"};
        p->pw_uid = p->pw_gid = strtoul(number, 0, 10);
    }
    if (file) fclose(file);
    return found;
}
static __thread struct passwd last_user;
static __thread char last_name[512];
struct passwd *getpwnam(const char *name) {
    REAL(getpwnam);
    return find_user(name, 0, &last_user, last_name, sizeof last_name) ? &last_user : real(name);
}
struct passwd *getpwuid(uid_t uid) {
    REAL(getpwuid);
    return find_user(0, uid, &last_user, last_name, sizeof last_name) ? &last_user : real(uid);
}
int getpwnam_r(const char *name, struct passwd *p, char *b, size_t n, struct passwd **result) {
    REAL(getpwnam_r);
    if (!find_user(name, 0, p, b, n)) return real(name, p, b, n, result);
    *result = p;
    return 0;
}
int getpwuid_r(uid_t uid, struct passwd *p, char *b, size_t n, struct passwd **result) {
    REAL(getpwuid_r);
    if (!find_user(0, uid, p, b, n)) return real(uid, p, b, n, result);
    *result = p;
    return 0;
}

/* -- sleepers ------------------------------------------------------------------------------------------------------ */
static struct sleeper *claim(int64_t deadline, uint32_t state) {
    pid_t tid = syscall(SYS_gettid);
    for (int k = 0; k < SLEEPERS; k++) {
        struct sleeper *s = &S->sleeper[k];
        if (s->state != FREE || !__sync_bool_compare_and_swap(&s->state, FREE, CLAIMED)) continue;
        uint32_t top = S->sleepers;
        while (top < (uint32_t)k + 1 && !__sync_bool_compare_and_swap(&S->sleepers, top, k + 1)) top = S->sleepers;
        s->deadline = deadline;
        s->word = 0;
        s->pid = getpid();
        s->tid = tid;
        s->process = here;
        s->thread = number;
        __atomic_store_n(&s->state, state, __ATOMIC_SEQ_CST);
        return s;
    }
    static const char text[] = "pipistrelle: too many threads sleep in virtual time\n";
    syscall(SYS_write, 2, text, sizeof text - 1);
    abort();
}
static void release(void *s) { __atomic_store_n(&((struct sleeper *)s)->state, FREE, __ATOMIC_SEQ_CST); }

static void sleep_until(int64_t deadline) {
    if (S->now >= deadline) return;
    struct sleeper *s = claim(deadline, ASLEEP);
    pthread_cleanup_push(release, s);
    int type;
    for (;;) {
        __atomic_store_n(&s->word, 0, __ATOMIC_SEQ_CST); /* before looking at the clock, which the conductor moves first */
        if (S->now >= deadline) break;
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
        futex(&s->word, FUTEX_WAIT, 0, 0);
        pthread_setcanceltype(type, &type);
    }
    pthread_cleanup_pop(1);
}

static void unlist(void *record) {
    pthread_mutex_lock(&guard);
    for (struct record **r = &records; *r; r = &(*r)->next)
        if (*r == record) {
            *r = (*r)->next;
            break;
        }
    pthread_mutex_unlock(&guard);
}
static void *helper(void *unused) {
    (void)unused;
    volatile uint32_t *word = &S->process[here].word;
    for (;;) {
        uint32_t seen = *word;
        int due = 0;
        pthread_mutex_lock(&guard);
        for (struct record *r = records; r; r = r->next)
            if (r->sleeper->state == WOKEN) {
                due = 1;
                if (r->cond)
                    real_broadcast(r->cond);
                else {
                    uint64_t one = 1;
                    syscall(SYS_write, r->event, &one, sizeof one);
                }
            }
        pthread_mutex_unlock(&guard);
        if (due) { /* again, in case a thread had not begun to wait */
            struct timespec pause = {0, 20000};
            syscall(SYS_nanosleep, &pause, 0);
        } else
            futex(word, FUTEX_WAIT, seen, 0);
    }
    return 0;
}
static void list(struct record *record) {
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&guard);
    if (helped != getpid()) {
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        pthread_attr_t attr;
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attr, 65536 > PTHREAD_STACK_MIN ? 65536 : PTHREAD_STACK_MIN);
        pthread_t thread;
        if (real_create(&thread, &attr, helper, 0) == 0) helped = getpid();
        pthread_attr_destroy(&attr);
        pthread_sigmask(SIG_SETMASK, &old, 0);
    }
    record->next = records;
    records = record;
    pthread_mutex_unlock(&guard);
    pthread_setcancelstate(cancel, &cancel);
}

/* -- the clock ----------------------------------------------------------------------------------------------------- */
int clock_gettime(clockid_t clock, struct timespec *t) {
    if (!S || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE && clock != CLOCK_MONOTONIC &&
               clock != CLOCK_MONOTONIC_COARSE && clock != CLOCK_MONOTONIC_RAW && clock != CLOCK_BOOTTIME))
        return syscall(SYS_clock_gettime, clock, t);
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

/* -- sleeps and timeouts ------------------------------------------------------------------------------------------- */
int nanosleep(const struct timespec *t, struct timespec *rest) {
    if (!S) return syscall(SYS_nanosleep, t, rest);
    sleep_until(S->now + t->tv_sec * SECOND + t->tv_nsec);
    return 0;
}
int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *rest) {
    if (!S) return syscall(SYS_clock_nanosleep, clock, flags, t, rest) ? errno : 0;
    int64_t length = t->tv_sec * SECOND + t->tv_nsec;
    sleep_until(flags & TIMER_ABSTIME ? length : S->now + length);
    return 0;
}
unsigned sleep(unsigned seconds) {
    struct timespec t = {seconds, 0};
    nanosleep(&t, 0);
    return 0;
}
int usleep(useconds_t us) {
    struct timespec t = {us / 1000000, us % 1000000 * 1000L};
    return nanosleep(&t, 0);
}
static void leave(void *record) {
    unlist(record);
    release(((struct record *)record)->sleeper);
}
int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *t) {
    if (!S) return real_timed(cond, mutex, t);
    int64_t deadline = t->tv_sec * SECOND + t->tv_nsec;
    int result = 0;
    if (S->now >= deadline) { /* let others have the mutex, as the real one does */
        pthread_mutex_unlock(mutex);
        pthread_mutex_lock(mutex);
        return ETIMEDOUT;
    }
    struct record r = {0, claim(deadline, CLAIMED), cond, -1};
    list(&r);
    __atomic_store_n(&r.sleeper->state, HELPED, __ATOMIC_SEQ_CST);
    pthread_cleanup_push(leave, &r);
    real_wait(cond, mutex);
    if (S->now >= deadline) result = ETIMEDOUT;
    pthread_cleanup_pop(1);
    return result;
}
int poll(struct pollfd *fds, nfds_t n, int timeout) {
    if (!S || timeout <= 0 || n > 1000) return real_poll(fds, n, timeout);
    int ready = real_poll(fds, n, 0);
    if (ready) return ready;
    struct pollfd more[n + 1];
    memcpy(more, fds, n * sizeof *fds);
    int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), failed = 0;
    if (event < 0) return real_poll(fds, n, timeout);
    more[n] = (struct pollfd){event, POLLIN, 0};
    int64_t deadline = S->now + timeout * 1000000LL;
    struct record r = {0, claim(deadline, CLAIMED), 0, event};
    list(&r);
    __atomic_store_n(&r.sleeper->state, HELPED, __ATOMIC_SEQ_CST);
    pthread_cleanup_push(leave, &r);
    ready = real_poll(more, n + 1, -1);
    failed = errno;
    pthread_cleanup_pop(1);
    syscall(SYS_close, event);
    memcpy(fds, more, n * sizeof *fds);
    if (ready > 0 && more[n].revents) ready--;
    errno = failed;
    return ready;
}

/* -- what may wake another thread ---------------------------------------------------------------------------------- */
/* -- TCP sockets ----------------------------------------------------------------------------------------------------
   A TCP packet may wait in the kernel, for a delayed acknowledgement or for ksoftirqd, while all threads seem to sleep. A
   Unix socket hands its data over at once. So a TCP socket becomes a Unix socket when it is bound or connected. Its name
   has the port, and the clock's file, which keeps runs apart. */
static int unix_name(struct sockaddr_un *name, const struct sockaddr *a) {
    int port = ntohs(((const struct sockaddr_in *)a)->sin_port); /* at the same place for IPv6 */
    memset(name, 0, sizeof *name);
    name->sun_family = AF_UNIX;
    return offsetof(struct sockaddr_un, sun_path) + 1 + snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "%s/%d", clock_name, port);
}
static int is_tcp(int s) {
    int domain = 0, type = 0;
    socklen_t l = sizeof domain;
    if (getsockopt(s, SOL_SOCKET, SO_DOMAIN, &domain, &l) || getsockopt(s, SOL_SOCKET, SO_TYPE, &type, &l)) return 0;
    return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}
static int turn_unix(int s) {
    int flags = fcntl(s, F_GETFL), more = fcntl(s, F_GETFD);
    int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made < 0) return -1;
    fcntl(made, F_SETFL, flags);
    if (dup3(made, s, more & FD_CLOEXEC ? O_CLOEXEC : 0) < 0) return -1;
    syscall(SYS_close, made);
    return 0;
}
static void loopback(struct sockaddr *a, socklen_t *l, int port) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    memcpy(a, &in, *l < sizeof in ? *l : sizeof in);
    *l = sizeof in;
}
static int port_of(const struct sockaddr_un *name, socklen_t l) {
    char text[sizeof name->sun_path + 1] = "", *slash;
    size_t n = l - offsetof(struct sockaddr_un, sun_path);
    if (l <= offsetof(struct sockaddr_un, sun_path) + 1) return 0;
    memcpy(text, name->sun_path + 1, n - 1);
    size_t own = strlen(clock_name);
    if (strncmp(text, clock_name, own) || text[own] != '/') return -1;
    slash = text + own;
    return atoi(slash + 1);
}
int bind(int s, const struct sockaddr *a, socklen_t l) {
    REAL(bind);
    if (!S || (a->sa_family != AF_INET && a->sa_family != AF_INET6) || !is_tcp(s)) return real(s, a, l);
    struct sockaddr_in in;
    memcpy(&in, a, sizeof in);
    if (!in.sin_port) in.sin_port = htons(32768 + __atomic_fetch_add(&S->ports, 1, __ATOMIC_SEQ_CST) % 28000);
    struct sockaddr_un name;
    int n = unix_name(&name, (struct sockaddr *)&in);
    return turn_unix(s) ? -1 : real(s, (struct sockaddr *)&name, n);
}
int listen(int s, int n) {
    REAL(listen);
    return real(s, S ? 4096 : n);
}
int connect(int s, const struct sockaddr *a, socklen_t l) {
    REAL(connect);
    act();
    if (!S || (a->sa_family != AF_INET && a->sa_family != AF_INET6)) return real(s, a, l);
    struct sockaddr_un name;
    int n = unix_name(&name, a);
    if (is_tcp(s) && turn_unix(s)) return -1;
    uint32_t port = ntohs(((const struct sockaddr_in *)a)->sin_port);
    if (port >= S->first_port && port <= S->last_port) __atomic_fetch_add(&S->calls, 1, __ATOMIC_SEQ_CST);
    return real(s, (struct sockaddr *)&name, n);
}
int accept4(int s, struct sockaddr *a, socklen_t *l, int flags) {
    REAL(accept4);
    if (!S) return real(s, a, l, flags);
    struct sockaddr_un own, name;
    socklen_t n = sizeof name, m = sizeof own;
    static int (*named)(int, struct sockaddr *, socklen_t *);
    if (!named) named = dlsym(RTLD_NEXT, "getsockname");
    int ours = !named(s, (struct sockaddr *)&own, &m) && own.sun_family == AF_UNIX && port_of(&own, m) > 0;
    if (!ours) return real(s, a, l, flags);
    int made = real(s, (struct sockaddr *)&name, &n, flags);
    if (made >= 0 && a && l) loopback(a, l, 1);
    return made;
}
int accept(int s, struct sockaddr *a, socklen_t *l) { return accept4(s, a, l, 0); }
static int told_name(int s, struct sockaddr *a, socklen_t *l, int (*real)(int, struct sockaddr *, socklen_t *), int peer) {
    struct sockaddr_un name;
    socklen_t n = sizeof name, m = sizeof name;
    int result = real(s, (struct sockaddr *)&name, &n), port = -1;
    if (result || !S || name.sun_family != AF_UNIX) return real(s, a, l);
    if ((port = port_of(&name, n)) <= 0 && (peer || n <= sizeof(sa_family_t))) { /* nameless: a connecting end */
        static int (*named)(int, struct sockaddr *, socklen_t *), (*peered)(int, struct sockaddr *, socklen_t *);
        if (!named) named = dlsym(RTLD_NEXT, "getsockname"), peered = dlsym(RTLD_NEXT, "getpeername");
        if ((peer ? named : peered)(s, (struct sockaddr *)&name, &m) || name.sun_family != AF_UNIX || port_of(&name, m) <= 0)
            return real(s, a, l);
        port = 1;
    }
    if (port <= 0) return real(s, a, l);
    loopback(a, l, port);
    return 0;
}
int getsockname(int s, struct sockaddr *a, socklen_t *l) { REAL(getsockname); return told_name(s, a, l, real, 0); }
int getpeername(int s, struct sockaddr *a, socklen_t *l) { REAL(getpeername); return told_name(s, a, l, real, 1); }
int setsockopt(int s, int level, int option, const void *value, socklen_t l) {
    REAL(setsockopt);
    int result = real(s, level, option, value, l);
    return result && S && level == IPPROTO_TCP ? 0 : result;
}
ssize_t send(int s, const void *b, size_t n, int f) { REAL(send); act(); return real(s, b, n, f); }
ssize_t sendto(int s, const void *b, size_t n, int f, const struct sockaddr *a, socklen_t l) { REAL(sendto); act(); return real(s, b, n, f, a, l); }
ssize_t sendmsg(int s, const struct msghdr *m, int f) { REAL(sendmsg); act(); return real(s, m, f); }
ssize_t write(int s, const void *b, size_t n) { REAL(write); act(); return real(s, b, n); }
ssize_t writev(int s, const struct iovec *v, int n) { REAL(writev); act(); return real(s, v, n); }
ssize_t read(int s, void *b, size_t n) { REAL(read); act(); return real(s, b, n); } /* may make room in a pipe */
ssize_t recv(int s, void *b, size_t n, int f) { REAL(recv); act(); return real(s, b, n, f); }
int close(int s) { REAL(close); act(); return real(s); }
int shutdown(int s, int h) { REAL(shutdown); act(); return real(s, h); }
int kill(pid_t p, int g) { REAL(kill); act(); return real(p, g); }
int killpg(pid_t p, int g) { REAL(killpg); act(); return real(p, g); }
int pthread_kill(pthread_t t, int g) { REAL(pthread_kill); act(); return real(t, g); }
int pthread_cond_signal(pthread_cond_t *c) { act(); return real_broadcast ? ({ static int (*real)(pthread_cond_t *); if (!real) real = dlvsym(RTLD_NEXT, "pthread_cond_signal", "GLIBC_2.3.2"); if (!real) real = dlsym(RTLD_NEXT, "pthread_cond_signal"); real(c); }) : 0; }
int pthread_cond_broadcast(pthread_cond_t *c) { act(); return real_broadcast(c); }
struct beginning {
    void *(*function)(void *);
    void *argument;
    uint32_t number;
};
static void *begin_thread(void *given) {
    struct beginning b = *(struct beginning *)given;
    free(given);
    number = b.number;
    return b.function(b.argument);
}
int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*f)(void *), void *x) {
    struct beginning *b = S ? malloc(sizeof *b) : 0;
    act();
    if (!b) return real_create(t, a, f, x);
    *b = (struct beginning){f, x, next_number()};
    int result = real_create(t, a, begin_thread, b);
    if (result) free(b);
    return result;
}
int pthread_rwlock_unlock(pthread_rwlock_t *l) { REAL(pthread_rwlock_unlock); act(); return real(l); }
int pthread_mutex_unlock(pthread_mutex_t *m) {
    REAL(pthread_mutex_unlock);
    if (m->__data.__lock > 1) act(); /* another thread waits for it */
    return real(m);
}
int sem_post(sem_t *s) { REAL(sem_post); act(); return real(s); }
pid_t fork(void) {
    REAL(fork);
    act();
    pid_t pid = real();
    if (pid > 0 && S) enter(pid); /* the child may not have run yet */
    return pid;
}
/* A child of vfork() runs before anything can enter it, so it enters itself. */
static void entered(void) {
    if (S) enter(getpid());
    act();
}
int execve(const char *p, char *const a[], char *const e[]) { REAL(execve); entered(); return real(p, a, e); }
int execv(const char *p, char *const a[]) { REAL(execv); entered(); return real(p, a); }
int execvp(const char *p, char *const a[]) { REAL(execvp); entered(); return real(p, a); }
int execvpe(const char *p, char *const a[], char *const e[]) { REAL(execvpe); entered(); return real(p, a, e); }
int posix_spawn(pid_t *pid, const char *p, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *t, char *const a[], char *const e[]) {
    REAL(posix_spawn);
    pid_t made;
    act();
    int result = real(&made, p, f, t, a, e);
    if (!result && S) enter(made);
    if (pid) *pid = made;
    return result;
}
int posix_spawnp(pid_t *pid, const char *p, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *t, char *const a[], char *const e[]) {
    REAL(posix_spawnp);
    pid_t made;
    act();
    int result = real(&made, p, f, t, a, e);
    if (!result && S) enter(made);
    if (pid) *pid = made;
    return result;
}
