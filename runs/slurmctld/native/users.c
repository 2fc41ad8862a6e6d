/* The users of a workload: they exist in a file of lines NAME:NUMBER only. A program acts as the one that PIPISTRELLE_UID
   names. */
#include "preload.h"
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long acts_as = -1;
static const char *users; /* file of users */

__attribute__((constructor)) static void begin(void) {
    if (!getenv("PIPISTRELLE_CLOCK")) return;
    const char *uid = getenv("PIPISTRELLE_UID");
    if (uid) acts_as = strtol(uid, 0, 10);
    users = getenv("PIPISTRELLE_USERS");
}
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
