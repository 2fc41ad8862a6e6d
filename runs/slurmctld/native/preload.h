/* What the parts of the preloaded library share. The functions are described in threads.c. */
#ifndef PRELOAD_H
#define PRELOAD_H
#define _GNU_SOURCE
#include "clock.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <time.h>

#define SECOND 1000000000LL
#define HIDDEN __attribute__((visibility("hidden")))
#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* What a thread may wait for. Signals interrupt only those from SLEEP on. */
enum { MUTEX = 1, LOCK, COND, JOIN, SLEEP, FILES, CHILD, SIGNAL };

HIDDEN extern struct shared *S; /* null: this process does not live in virtual time */
HIDDEN extern char clock_name[64]; /* the same in all processes of a run */
HIDDEN extern __thread int me; /* index of this thread, or -1 */

HIDDEN int has_turn(void);
HIDDEN void changed(void);
HIDDEN int wait_for(uint32_t kind, const volatile void *place, int64_t deadline);
HIDDEN int wait_and_look(uint32_t kind, int64_t deadline, uint64_t seen);
HIDDEN void go_outside(void);
HIDDEN void come_back(void);
HIDDEN int64_t in_time(const struct timespec *t);
HIDDEN void count_poll(void); /* in time.c */
#endif
