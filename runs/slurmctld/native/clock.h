/* The memory that the conductor shares with every process in virtual time, and the choice of the thread that runs next.

   At most one thread of all processes runs: the holder of the turn. It keeps the turn until it waits for something. It
   then writes down what it waits for, and gives the turn to the thread that `next_thread` chooses, or to the conductor.
   So it is known exactly, and not guessed, when all threads wait; and the order of all threads is always the same. */
#ifndef CLOCK_H
#define CLOCK_H
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 16384, CONDUCTOR = -1 };
#define NEVER INT64_MAX

/* States of a thread. Only the holder of the turn RUNS. A READY thread goes on as soon as it gets the turn. A thread
   that WAITS goes on when it is made READY, at its deadline, or, if it looks, after anything it looks at may have
   changed. A thread that is OUTSIDE sleeps in the kernel until a signal comes, and then becomes READY by itself. */
enum { FREE, RUNS, READY, WAITS, OUTSIDE };
/* Why a thread goes on. */
enum { WOKEN, TIMEOUT, LOOK, INTERRUPTED };

struct thread {
    volatile int64_t deadline; /* ns, virtual */
    volatile uint64_t order; /* position among READY threads, and among those that wait for the same thing */
    volatile uint64_t seen; /* value of `changes` at the last look */
    volatile uint64_t place; /* what it waits for: an address or a handle */
    volatile uint64_t handle; /* its pthread_t */
    volatile uint32_t state, word; /* word: futex, 1 when it gets the turn */
    volatile uint32_t number; /* in the order of creation: the kernel's numbers wrap around */
    volatile uint32_t kind, looks, why;
    volatile int32_t pid, tid;
};

struct shared {
    volatile int64_t now; /* ns, virtual */
    volatile int64_t limit; /* ns: the clock must not pass it */
    volatile uint64_t changes; /* counts what may end the waiting of a thread that looks */
    volatile uint64_t order; /* last value given to a thread */
    volatile uint64_t turns; /* how often the turn was given */
    volatile int32_t holder; /* index of the thread that has the turn, or CONDUCTOR */
    volatile uint32_t word; /* futex of the conductor, 1 when it gets the turn */
    volatile uint32_t top; /* upper bound of the entries in use */
    volatile uint32_t numbers; /* threads created so far */
    volatile int32_t leaving; /* process that is about to end, or 0 */
    volatile uint32_t signals, seen_signals; /* signals sent, and those whose handlers have ended */
    volatile uint32_t writers; /* threads that wait until they can write */
    volatile uint32_t ports; /* ports given to sockets that are bound to any port */
    volatile uint32_t calls, stop_calls; /* connections to the ports that are answered outside; the turn goes back at another number */
    volatile uint32_t first_port, last_port;
    struct thread thread[THREADS];
};

static inline uint64_t next_order(struct shared *s) { return __atomic_add_fetch(&s->order, 1, __ATOMIC_SEQ_CST); }

/* Return the thread that runs next, whose state is RUNS then, or CONDUCTOR. Only the holder of the turn calls this. */
static inline int next_thread(struct shared *s) {
    for (;;) {
        int ready = -1, look = -1, due = -1;
        if (s->leaving || s->signals != s->seen_signals) return CONDUCTOR;
        for (uint32_t i = 0; i < s->top; i++) {
            struct thread *t = &s->thread[i], *f;
            uint32_t state = t->state;
            if (state == READY) {
                if (ready < 0 || t->order < s->thread[ready].order) ready = i;
            } else if (state == WAITS) {
                if (t->looks && t->seen != s->changes && (look < 0 || t->number < s->thread[look].number)) look = i;
                if (t->deadline > s->limit) continue;
                f = due < 0 ? 0 : &s->thread[due];
                if (!f || t->deadline < f->deadline || (t->deadline == f->deadline && t->number < f->number)) due = i;
            }
        }
        int one = ready >= 0 ? ready : look >= 0 ? look : s->calls != s->stop_calls ? -1 : due;
        if (one < 0) return CONDUCTOR;
        struct thread *t = &s->thread[one];
        if (!__sync_bool_compare_and_swap(&t->state, one == ready ? READY : WAITS, RUNS)) continue; /* a signal came */
        if (one == ready) return one;
        t->why = one == look ? LOOK : TIMEOUT;
        if (one != look && s->now < t->deadline) s->now = t->deadline;
        return one;
    }
}
/* Give the turn to a thread or to the conductor. */
static inline void give_turn(struct shared *s, int one) {
    volatile uint32_t *word = one < 0 ? &s->word : &s->thread[one].word;
    s->turns++;
    s->holder = one;
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, word, FUTEX_WAKE, 1, 0, 0, 0);
}
/* Enter a thread that is READY; return its index, or -1 if there are too many. Only the holder of the turn does this. */
static inline int enter_thread(struct shared *s, int pid) {
    for (uint32_t i = 0; i < THREADS; i++) {
        struct thread *t = &s->thread[i];
        if (t->state != FREE) continue;
        t->handle = t->looks = t->word = 0;
        t->pid = t->tid = pid;
        t->why = WOKEN;
        t->number = ++s->numbers;
        t->order = next_order(s);
        if (s->top < i + 1) s->top = i + 1;
        __atomic_store_n(&t->state, READY, __ATOMIC_SEQ_CST);
        return i;
    }
    return -1;
}
#endif
