/* The memory that the conductor shares with every process in virtual time. */
#ifndef CLOCK_H
#define CLOCK_H
#include <stdint.h>

enum { SLEEPERS = 8192, PROCESSES = 4096, JOBS = 65536 };

/* What a sleeping thread needs in order to wake up: its own word, or the helper thread of its process. The conductor
   marks a sleeper as WOKEN before it wakes it; the thread itself frees its entry. */
enum { FREE = 0, CLAIMED = 1, ASLEEP = 2, HELPED = 3, WOKEN = 4 };
enum { JOB_NONE = 0, JOB_CLAIMED = 1, JOB_RUNS = 2, JOB_TOLD = 3, JOB_STRUCK = 4 };

struct sleeper {
    volatile int64_t deadline; /* ns, virtual */
    volatile uint32_t state;
    volatile uint32_t word; /* futex of an ASLEEP thread */
    volatile int32_t pid, tid;
    volatile uint32_t process; /* index in processes, for HELPED */
    volatile uint32_t thread; /* number of the thread, in the order of creation */
};

struct process {
    volatile int32_t pid;
    volatile uint32_t word; /* futex of the helper thread */
};

struct job {
    volatile uint32_t state, word; /* word: futex, 0 until the job is told to end */
    volatile int32_t pid, code;
    volatile int64_t begun;
    volatile uint32_t id, restarts;
    char nodes[488];
};

struct shared {
    volatile int64_t now; /* ns, virtual */
    volatile uint64_t acts; /* counts everything that can wake another thread */
    volatile uint32_t news; /* counts begun and struck jobs */
    volatile uint32_t jobs; /* entries in use of job */
    volatile uint32_t sleepers; /* upper bound of the entries in use */
    volatile uint32_t processes;
    volatile uint32_t ports; /* ports given to sockets that are bound to any port */
    volatile uint32_t calls; /* counts connections to the ports from first_port to last_port, which answer outside virtual time */
    volatile uint32_t first_port, last_port;
    volatile uint32_t threads, unused; /* threads created so far */
    struct process process[PROCESSES];
    struct sleeper sleeper[SLEEPERS];
    struct job job[JOBS];
};
#endif
