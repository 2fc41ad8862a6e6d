/* Sockets, pipes and files in virtual time: no call waits in the kernel for another thread. */
#include "preload.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

enum { PIECE = 4096 }; /* bytes that fit if a descriptor can be written at all */

static int64_t after_ms(int timeout) { return timeout < 0 ? NEVER : S->now + timeout * 1000000LL; }
static int look_at(struct pollfd *fds, nfds_t n) {
    static const struct timespec none;
    struct timespec t = none;
    return syscall(SYS_ppoll, fds, n, &t, 0, 0);
}
/* Call `look`, which never waits, until it finds something, fails, or the deadline is reached. */
#define LOOK_UNTIL(look, end, writes) \
    for (;;) { \
        uint64_t seen = S->changes; \
        int result = look; \
        if (result || S->now >= (end)) return result; \
        if (writes) __atomic_fetch_add(&S->writers, 1, __ATOMIC_SEQ_CST); \
        int why = wait_and_look(FILES, end, seen); \
        if (writes) __atomic_fetch_sub(&S->writers, 1, __ATOMIC_SEQ_CST); \
        if (why == INTERRUPTED) return errno = EINTR, -1; \
    }
static int poll_until(struct pollfd *fds, nfds_t n, int64_t end) {
    int writes = 0;
    for (nfds_t i = 0; i < n; i++) writes |= fds[i].events & POLLOUT;
    LOOK_UNTIL(look_at(fds, n), end, writes)
}
int poll(struct pollfd *fds, nfds_t n, int timeout) {
    REAL(poll);
    return has_turn() && timeout ? poll_until(fds, n, after_ms(timeout)) : real(fds, n, timeout);
}
int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask) {
    REAL(ppoll);
    if (!has_turn() || mask) return real(fds, n, t, mask);
    return poll_until(fds, n, t ? S->now + in_time(t) : NEVER);
}
static int look_at_sets(int n, fd_set *r, fd_set *w, fd_set *x, const fd_set *all) {
    struct timeval none = {0, 0};
    if (r) *r = all[0];
    if (w) *w = all[1];
    if (x) *x = all[2];
    return syscall(SYS_select, n, r, w, x, &none);
}
static int select_until(int n, fd_set *r, fd_set *w, fd_set *x, int64_t end) {
    fd_set all[3];
    if (r) all[0] = *r;
    if (w) all[1] = *w;
    if (x) all[2] = *x;
    LOOK_UNTIL(look_at_sets(n, r, w, x, all), end, w != 0)
}
int select(int n, fd_set *r, fd_set *w, fd_set *x, struct timeval *t) {
    REAL(select);
    if (!has_turn() || n > FD_SETSIZE) return real(n, r, w, x, t);
    return select_until(n, r, w, x, t ? S->now + t->tv_sec * SECOND + t->tv_usec * 1000 : NEVER);
}
int pselect(int n, fd_set *r, fd_set *w, fd_set *x, const struct timespec *t, const sigset_t *mask) {
    REAL(pselect);
    if (!has_turn() || mask || n > FD_SETSIZE) return real(n, r, w, x, t, mask);
    return select_until(n, r, w, x, t ? S->now + in_time(t) : NEVER);
}
int epoll_wait(int e, struct epoll_event *events, int n, int timeout) {
    REAL(epoll_wait);
    if (!has_turn() || !timeout) return real(e, events, n, timeout);
    int64_t end = after_ms(timeout);
    LOOK_UNTIL(real(e, events, n, 0), end, 1)
}

/* Return whether a call on this descriptor would wait. */
static int would_wait(int s, short events) {
    struct pollfd one = {s, events, 0};
    return !look_at(&one, 1) && !(fcntl(s, F_GETFL) & O_NONBLOCK);
}
/* Wait until the descriptor is ready, unless the call does not wait. */
static void await(int s, short events) {
    while (has_turn() && would_wait(s, events)) {
        struct pollfd one = {s, events, 0};
        poll_until(&one, 1, NEVER);
    }
}

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
    changed();
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
    await(s, POLLIN);
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

/* -- reading and writing --------------------------------------------------------------------------------------------- */
static void has_read(void) {
    if (S && S->writers) changed(); /* it may have made room */
}
static void has_written(void) { changed(); }
/* Return whether to write in pieces: much data, which has to be taken by another thread, would wait in the kernel. */
static int in_pieces(int s, size_t n) {
    struct stat file;
    return n > PIECE && has_turn() && !(fcntl(s, F_GETFL) & O_NONBLOCK) && !fstat(s, &file) && !S_ISREG(file.st_mode);
}
#define WRITE(call) \
    ssize_t done = 0; \
    int pieces = in_pieces(s, n); \
    do { \
        size_t size = pieces && n - done > PIECE ? PIECE : n - done; \
        await(s, POLLOUT); \
        ssize_t part = call; \
        has_written(); \
        if (part < 0) return done ? done : part; \
        done += part; \
    } while (pieces && (size_t)done < n); \
    return done

ssize_t write(int s, const void *b, size_t n) {
    REAL(write);
    WRITE(real(s, (const char *)b + done, size));
}
ssize_t send(int s, const void *b, size_t n, int f) {
    REAL(send);
    if (f & MSG_DONTWAIT) {
        ssize_t result = real(s, b, n, f);
        has_written();
        return result;
    }
    WRITE(real(s, (const char *)b + done, size, f));
}
ssize_t sendto(int s, const void *b, size_t n, int f, const struct sockaddr *a, socklen_t l) {
    REAL(sendto);
    if (!(f & MSG_DONTWAIT)) await(s, POLLOUT);
    ssize_t result = real(s, b, n, f, a, l);
    has_written();
    return result;
}
ssize_t sendmsg(int s, const struct msghdr *m, int f) {
    REAL(sendmsg);
    if (!(f & MSG_DONTWAIT)) await(s, POLLOUT);
    ssize_t result = real(s, m, f);
    has_written();
    return result;
}
ssize_t writev(int s, const struct iovec *v, int n) {
    REAL(writev);
    await(s, POLLOUT);
    ssize_t result = real(s, v, n);
    has_written();
    return result;
}
ssize_t read(int s, void *b, size_t n) {
    REAL(read);
    await(s, POLLIN);
    ssize_t result = real(s, b, n);
    has_read();
    return result;
}
ssize_t readv(int s, const struct iovec *v, int n) {
    REAL(readv);
    await(s, POLLIN);
    ssize_t result = real(s, v, n);
    has_read();
    return result;
}
ssize_t recv(int s, void *b, size_t n, int f) {
    REAL(recv);
    if (!(f & MSG_DONTWAIT)) await(s, POLLIN);
    ssize_t result = real(s, b, n, f);
    has_read();
    return result;
}
ssize_t recvfrom(int s, void *b, size_t n, int f, struct sockaddr *a, socklen_t *l) {
    REAL(recvfrom);
    if (!(f & MSG_DONTWAIT)) await(s, POLLIN);
    ssize_t result = real(s, b, n, f, a, l);
    has_read();
    return result;
}
ssize_t recvmsg(int s, struct msghdr *m, int f) {
    REAL(recvmsg);
    if (!(f & MSG_DONTWAIT)) await(s, POLLIN);
    ssize_t result = real(s, m, f);
    has_read();
    return result;
}
int close(int s) {
    REAL(close);
    int result = real(s);
    changed();
    return result;
}
int shutdown(int s, int h) {
    REAL(shutdown);
    int result = real(s, h);
    changed();
    return result;
}
