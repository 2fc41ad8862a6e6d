/* Waiting for processes, and starting them, in virtual time. */
#include "preload.h"
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

int HIDDEN enter_process(int pid);

/* Look again and again without waiting, until `call` finds a process. */
#define AWAIT(call, found) \
    if (!has_turn() || options & WNOHANG) return call; \
    options |= WNOHANG; \
    for (;;) { \
        uint64_t seen = S->changes; \
        pid_t result = call; \
        if (result < 0 || (found)) return result; \
        if (wait_and_look(CHILD, NEVER, seen) == INTERRUPTED) return errno = EINTR, -1; \
    }
pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    REAL(wait4);
    AWAIT(real(pid, status, options, usage), result)
}
pid_t waitpid(pid_t pid, int *status, int options) { return wait4(pid, status, options, 0); }
pid_t wait(int *status) { return wait4(-1, status, 0, 0); }
pid_t wait3(int *status, int options, struct rusage *usage) { return wait4(-1, status, options, usage); }
int waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    REAL(waitid);
    siginfo_t own;
    if (!info) info = &own;
    info->si_pid = 0;
    AWAIT(real(type, id, info, options), info->si_pid)
}

/* A spawned child runs at once, and waits until its parent has entered it. */
static int spawned(int result, pid_t made, pid_t *pid) {
    if (!result && has_turn()) enter_process(made);
    if (!result && pid) *pid = made;
    return result;
}
int posix_spawn(pid_t *pid, const char *p, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *t, char *const a[], char *const e[]) {
    REAL(posix_spawn);
    pid_t made = 0;
    int result = real(&made, p, f, t, a, e);
    return spawned(result, made, pid);
}
int posix_spawnp(pid_t *pid, const char *p, const posix_spawn_file_actions_t *f, const posix_spawnattr_t *t, char *const a[], char *const e[]) {
    REAL(posix_spawnp);
    pid_t made = 0;
    int result = real(&made, p, f, t, a, e);
    return spawned(result, made, pid);
}
/* The real one waits in the kernel. Signals stay as they are. */
int system(const char *command) {
    REAL(system);
    if (!has_turn() || !command) return real(command);
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)0);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}
