/* Teams of threads: what GCC's OpenMP pragmas become here, in the place of its library (libgomp).
 *
 * Some things are different from libgomp's, all for steps of many short parallel functions and for machines that
 * others use, too:
 *
 *   late threads   A region begins at once.  Threads that come while its first loop with a dynamic schedule has pieces
 *                  take part; one that has not come by its end is not waited for.  Only before a barrier, and before
 *                  what divides its work by the number of threads, those that are late are waited for, for JOIN_NS at
 *                  most.  So a core that somebody else has taken costs its share and no more.
 *   waits          Threads that wait for the next region spin for SPIN_NS and then sleep, those that wait for each
 *                  other for INNER_SPIN_NS.  OMP_WAIT_POLICY=passive: they sleep at once, =active: they spin on.
 *   busy machines  Where threads had to leave their cores to somebody else, whoever waits looks whether those that it
 *                  waits for run, for BUSY_NS from then on.  If one does not, the one that waits sleeps, and the other
 *                  is moved to its core, and to another one when the next region begins.  For the system moves threads
 *                  seldom, and one that is stopped within its last piece of a region stops all.
 *   forks          A child of a fork has no team, and makes one when it needs it.
 *   denormals      All threads of a region round, and treat denormal numbers, as the one that begins it does.
 *
 * A thread that begins a region has a team of its own, whose threads wait for the next region and end with it.  A
 * region within a region has one thread.  Where a thread cannot be started, the team is smaller.
 *
 * The names are those that GCC generates calls of (gcc/omp-builtins.def) and of the OpenMP API; they are hidden, so
 * that a libgomp in the same process is left alone.  Other compilers, and systems without futexes, use their own
 * OpenMP.
 */
#if defined(_OPENMP) && defined(__linux__) && !defined(__clang__)
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "cores.h"
#include "dtconv.h"

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1 /* of Linux; glibc tells it for _GNU_SOURCE alone */
#endif
#ifndef FUTEX_WAIT_PRIVATE /* of Linux; its own headers are not everywhere beside another C library than glibc */
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129
#endif
#define HIDDEN __attribute__((visibility("hidden")))

enum {
    JOIN_NS = 250000,      /* that a region waits for threads, at most ... */
    LEAST_JOIN_NS = 5000,  /* ... and after it has waited in vain, less and less */
    SPIN_NS = 200000,      /* about what the caller needs between two functions, and seldom more */
    INNER_SPIN_NS = 50000, /* for threads of the same region */
    LOOK_NS = 10000,       /* between two looks whether others run; about as long as it takes to wake a thread */
    LOOKED_AT = 8,         /* threads, at a time */
    OFTEN_NS = 10000000,   /* a program that runs for a moment, now and then, does not come so often */
    BUSY_NS = 20000000,
    ACTIVE_SPIN_NS = 1000000000,
    PAUSES = 32,           /* between two looks at the clock */
    YIELD_AFTER = 4096,    /* pauses */
    LOOPS = 16,            /* of a region that threads may be in at the same time */
    STACK_BYTES = 1 << 20, /* of a thread, where OMP_STACKSIZE does not say otherwise */
};
#define BEGINNING 0xffffffffu
#define CLOSED 0xffffffffu

/* A word that changes, and how many sleep until it does. */
typedef struct {
    _Alignas(64) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
} word;

/* A loop with a dynamic schedule.  turn: one more than twice the rounds that the place has had in this region before;
 * BEGINNING while it is set up; 0: it had none.  left: threads that are through. */
typedef struct {
    _Alignas(64) _Atomic long next;
    long end, step, chunk;
    _Atomic uint32_t turn, left;
} loop;

/* A thread.  works: others may have to wait for it.  core: the last one that it is known to have been on. */
typedef struct {
    _Alignas(64) pid_t thread; /* each has a line of the caches for itself */
    clockid_t clock;
    _Atomic bool known, works, moved;
    _Atomic uint32_t core;
} member;

typedef struct {
    word call;                          /* regions so far; the threads wait for it */
    word seats;                         /* of the region that are free: who takes one takes part; or CLOSED */
    word done;                          /* threads that took part, and are through */
    word barrier;                       /* barriers so far */
    _Atomic uint32_t arrived;           /* at the barrier */
    _Atomic uint32_t size;              /* threads of the region; 0 while more may come */
    _Atomic int64_t left_at, busy_till; /* ns */
    _Atomic bool ends;
    uint32_t wanted, used; /* threads; loops of the region before */
    bool combined;         /* the region begins with its first loop set up */
    void (*work)(void *);
    void *data;
    uint64_t float_mode; /* of the thread that begins the region */
    loop loops[LOOPS];
    _Atomic int64_t join_ns;
    uint32_t started; /* threads besides the one that the team belongs to */
    pthread_t threads[DTCONV_MOST_THREADS];
    _Atomic uint32_t members;
    member member[DTCONV_MOST_THREADS + 1];
} team;

/* Where a thread is: the region, or NULL, its number there, the loops that it has begun; outside of a region, or where
 * that has one thread, the rest of the loop. */
typedef struct {
    team *region;
    uint32_t number, loops;
    long from, end;
} place;

static _Thread_local place here;
static _Thread_local int within; /* regions of several threads */
static _Thread_local team *own;
static _Thread_local member *self;   /* in its team */
static _Thread_local long left_core; /* how often, when it was asked last */
static pthread_key_t own_key;        /* the same, to end it with its thread */
static int64_t spin_ns = SPIN_NS, inner_spin_ns = INNER_SPIN_NS;

static size_t stack_bytes = STACK_BYTES;

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void pause_once(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

#if defined(__x86_64__)
static inline uint64_t float_mode(void) { return __builtin_ia32_stmxcsr() & ~0x3fu; } /* without the flags: MXCSR */
static inline void set_float_mode(uint64_t mode) { __builtin_ia32_ldmxcsr((unsigned)mode); }
#elif defined(__aarch64__)
static inline uint64_t float_mode(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void set_float_mode(uint64_t mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode)); }
#else
static inline uint64_t float_mode(void) { return 0; }
static inline void set_float_mode(uint64_t mode) { (void)mode; }
#endif

/* One of many rounds that wait for a thread which is at work on what is waited for; it may want this core. */
static void pause_or_yield(uint32_t round) {
    if (round % YIELD_AFTER)
        pause_once();
    else
        sched_yield();
}

static uint32_t load(const _Atomic uint32_t *of) { return atomic_load_explicit(of, memory_order_acquire); }

/* Until `w` is no longer `value`: true; or for at most `limit` ns: then false. */
static bool spin(const word *w, uint32_t value, int64_t limit) {
    if (load(&w->value) != value) return true;
    for (const int64_t begin = now(); now() - begin <= limit;)
        for (int i = 0; i < PAUSES; i++) {
            pause_once();
            if (load(&w->value) != value) return true;
        }
    return false;
}

/* Until `w` is no longer `value`, spinning for `limit` ns; what it is then. */
static uint32_t wait_for(word *w, uint32_t value, int64_t limit) {
    if (!spin(w, value, limit)) {
        atomic_fetch_add(&w->sleepers, 1);
        while (atomic_load(&w->value) == value) syscall(SYS_futex, &w->value, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
        atomic_fetch_sub(&w->sleepers, 1);
    }
    return load(&w->value);
}

/* Whether threads of the team have had to leave their cores to somebody else, twice within OFTEN_NS: the calling thread
 * looks whether it has, since it looked last. */
static void look_for_others(team *t) {
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) || usage.ru_nivcsw == left_core) return;
    left_core = usage.ru_nivcsw;
    const int64_t here_and_now = now(), before = atomic_exchange(&t->left_at, here_and_now);
    if (here_and_now - before < OFTEN_NS)
        atomic_store_explicit(&t->busy_till, here_and_now + BUSY_NS, memory_order_relaxed);
}

static bool is_busy(const team *t) { return now() < atomic_load_explicit(&t->busy_till, memory_order_relaxed); }

/* Adds the calling thread to the team's. */
static void become_member(team *t) {
    self = &t->member[atomic_fetch_add(&t->members, 1)];
    self->thread = (pid_t)syscall(SYS_gettid);
    self->core = core_here();
    self->works = true;
    self->known = !pthread_getcpuclockid(pthread_self(), &self->clock);
}

/* Spins for at most LOOK_NS; 1: `w` is no longer `value`.  2: a thread that is at work did not run, and may go on where
 * the calling one is, which should sleep; all but the one that the team belongs to are moved there.  Of many threads
 * some are looked at. */
static int look(team *t, const word *w, uint32_t value) {
    const uint32_t members = load(&t->members);
    member *at_work[LOOKED_AT];
    int64_t before[LOOKED_AT];
    uint32_t count = 0;
    for (uint32_t i = 0; i < members && count < LOOKED_AT; i++) {
        member *m = &t->member[i];
        if (!m->known || m == self || !m->works) continue;
        at_work[count] = m;
        before[count++] = time_run(m->clock);
    }
    if (spin(w, value, LOOK_NS)) return 1;
    for (uint32_t i = 0; i < count; i++) {
        member *m = at_work[i];
        if (before[i] < 0 || !m->works || time_run(m->clock) != before[i]) continue;
        if (m == t->member) return 2; /* a process that it starts would have its affinity of that moment */
        m->core = core_here();
        m->moved = true;
        move_thread(m->thread, m->core, true);
        return 2;
    }
    return 0;
}

static void set_works(bool works) { atomic_store_explicit(&self->works, works, memory_order_relaxed); }

/* As wait_for(), of something that threads of the team do.  One that was moved to the core of another sleeps at once:
 * the other wants to go on there. */
static uint32_t wait_for_team(team *t, word *w, uint32_t value, int64_t limit) {
    const bool busy = limit && limit < ACTIVE_SPIN_NS && is_busy(t);
    const bool looks = busy && !atomic_exchange(&self->moved, false);
    int seen = 0;
    if (load(&w->value) != value) return load(&w->value);
    set_works(false);
    if (looks)
        for (const int64_t begin = now(); !seen && now() - begin <= limit;) seen = look(t, w, value);
    if (busy) self->core = core_here();
    const uint32_t found = seen == 1 ? load(&w->value) : wait_for(w, value, busy ? 0 : limit);
    set_works(true);
    return found;
}

/* When a region begins: threads that were on the calling one's core go to others. */
static void spread(team *t) {
    const uint32_t members = load(&t->members), core = core_here();
    for (uint32_t i = 0; i < members; i++) {
        member *m = &t->member[i];
        if (m == self || !m->known || m->core != core) continue;
        m->core = UINT32_MAX;
        move_thread(m->thread, core, false);
    }
}

static void wake(word *w, uint32_t sleepers) {
    if (atomic_load(&w->sleepers)) syscall(SYS_futex, &w->value, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

static bool has_seats(const team *t) {
    const uint32_t seats = load(&t->seats.value);
    return seats && seats != CLOSED;
}

/* The number of threads of the region, from now on; others that are late are waited for if `patient`. */
static uint32_t size_of(team *t, bool patient) {
    uint32_t size = load(&t->size);
    if (size) return size;
    const int64_t limit = patient ? atomic_load_explicit(&t->join_ns, memory_order_relaxed) : 0;
    const int64_t begin = patient ? now() : 0;
    for (int64_t passed = 0; passed < limit && has_seats(t); passed = now() - begin)
        for (int i = 0; i < PAUSES && has_seats(t); i++) pause_once();
    const uint32_t free_seats = atomic_exchange(&t->seats.value, CLOSED);
    if (free_seats == CLOSED) { /* somebody else asks, too */
        for (uint32_t i = 1; !(size = load(&t->size)); i++) pause_or_yield(i);
        return size;
    }
    if (patient) {
        const int64_t next = !free_seats ? JOIN_NS : limit / 2 > LEAST_JOIN_NS ? limit / 2 : LEAST_JOIN_NS;
        atomic_store_explicit(&t->join_ns, next, memory_order_relaxed);
    }
    atomic_store_explicit(&t->size, t->wanted - free_seats, memory_order_release);
    return t->wanted - free_seats;
}

/* Takes part in the region that has a seat, if there is one. */
static void join(team *t) {
    uint32_t seats = load(&t->seats.value);
    do
        if (!seats || seats == CLOSED) return;
    while (!atomic_compare_exchange_weak(&t->seats.value, &seats, seats - 1));
    here = (place){.region = t, .number = t->wanted - seats, .loops = t->combined};
    within = 1;
    if (float_mode() != t->float_mode) set_float_mode(t->float_mode);
    t->work(t->data);
    within = 0;
    here = (place){0};
    look_for_others(t);
    atomic_fetch_add(&t->done.value, 1);
    wake(&t->done, 1);
}

static void *thread_of(void *argument) {
    team *t = argument;
    become_member(t);
    for (uint32_t call = 0; !atomic_load(&t->ends); call = wait_for_team(t, &t->call, call, spin_ns)) join(t);
    return NULL;
}

static void start_threads(team *t, uint32_t threads) {
    sigset_t every, before;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return;
    pthread_attr_setstacksize(&attributes, stack_bytes);
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* signals are for the program's own threads */
    while (t->started < threads && !pthread_create(&t->threads[t->started], &attributes, thread_of, t)) t->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* The team of the calling thread, with so many others or as many as can be had; NULL: none. */
static team *team_with(uint32_t others) {
    if (!own) {
        own = aligned_alloc(64, (sizeof *own + 63) / 64 * 64);
        if (!own) return NULL;
        memset(own, 0, sizeof *own);
        own->join_ns = JOIN_NS;
        pthread_setspecific(own_key, own);
        become_member(own);
    }
    if (own->started < others) start_threads(own, others);
    return own->started ? own : NULL;
}

/* With the thread that it belongs to. */
static void end_team(void *ending) {
    team *t = ending;
    atomic_store(&t->ends, true);
    atomic_fetch_add(&t->call.value, 1);
    wake(&t->call, INT32_MAX);
    for (uint32_t i = 0; i < t->started; i++) pthread_join(t->threads[i], NULL);
    free(t);
    own = NULL;
    self = NULL;
}

static void run_alone(void (*work)(void *), void *data, long begin, long end) {
    const place before = here;
    here = (place){.from = begin, .end = end};
    work(data);
    here = before;
}

static void set_up(loop *l, long begin, long end, long step, long chunk, uint32_t turn) {
    l->end = end, l->step = step, l->chunk = chunk;
    atomic_store_explicit(&l->next, begin, memory_order_relaxed);
    atomic_store_explicit(&l->left, 0, memory_order_relaxed);
    atomic_store_explicit(&l->turn, turn, memory_order_release);
}

/* A region.  chunk: not 0 where it begins with a loop from `begin` to `end`, which is set up then. */
static void run(void (*work)(void *), void *data, unsigned threads, long begin, long end, long step, long chunk) {
    uint32_t wanted = threads ? threads : (uint32_t)dtconv_get_num_threads();
    if (wanted > DTCONV_MOST_THREADS) wanted = DTCONV_MOST_THREADS;
    team *t = within || wanted < 2 ? NULL : team_with(wanted - 1);
    if (!t) {
        run_alone(work, data, begin, end);
        return;
    }
    if (wanted > t->started + 1) wanted = t->started + 1;
    t->work = work, t->data = data, t->wanted = wanted, t->combined = chunk > 0;
    t->float_mode = float_mode();
    for (uint32_t i = 0; i < t->used && i < LOOPS; i++)
        atomic_store_explicit(&t->loops[i].turn, 0, memory_order_relaxed);
    if (t->combined) set_up(&t->loops[0], begin, end, step, chunk, 1);
    atomic_store_explicit(&t->size, 0, memory_order_relaxed);
    atomic_store_explicit(&t->done.value, 0, memory_order_relaxed);
    atomic_store_explicit(&t->seats.value, wanted - 1, memory_order_release);
    atomic_fetch_add(&t->call.value, 1);
    wake(&t->call, wanted - 1);
    if (is_busy(t)) spread(t);
    here = (place){.region = t, .loops = t->combined};
    within = 1;
    work(data);
    const uint32_t others = size_of(t, false) - 1;
    for (uint32_t done = load(&t->done.value); done < others;) done = wait_for_team(t, &t->done, done, inner_spin_ns);
    look_for_others(t);
    t->used = here.loops;
    within = 0;
    here = (place){0};
}

HIDDEN void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags);
HIDDEN void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags) {
    (void)flags;
    run(work, data, threads, 0, 0, 0, 0);
}

HIDDEN void GOMP_barrier(void);
HIDDEN void GOMP_barrier(void) {
    team *t = here.region;
    const uint32_t size = t ? size_of(t, true) : 1;
    if (size == 1) return;
    const uint32_t value = load(&t->barrier.value);
    if (atomic_fetch_add(&t->arrived, 1) + 1 < size) {
        wait_for_team(t, &t->barrier, value, inner_spin_ns);
        return;
    }
    atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
    atomic_fetch_add(&t->barrier.value, 1);
    wake(&t->barrier, INT32_MAX);
}

static loop *loop_of(const team *t) { return (loop *)&t->loops[(here.loops - 1) % LOOPS]; }

/* The next pieces of the loop that the thread is in. */
static bool next_of_loop(long *first, long *last) {
    if (!here.region) {
        *first = here.from, *last = here.end;
        here.from = here.end;
        return *first != *last;
    }
    loop *l = loop_of(here.region);
    const long some = l->chunk * l->step, from = atomic_fetch_add_explicit(&l->next, some, memory_order_relaxed);
    const long to = from + some;
    *first = from;
    *last = l->step > 0 ? (to < l->end ? to : l->end) : (to > l->end ? to : l->end);
    return l->step > 0 ? from < l->end : from > l->end;
}

/* Whether nobody is in the loop that had the place in the round before. */
static bool may_begin(const loop *l, uint32_t turn, uint32_t round) {
    return turn != BEGINNING && (!round || load(&l->left) == size_of(here.region, true));
}

/* The next loop of a region: whoever comes first sets it up. */
static bool start_loop(long begin, long end, long step, long chunk, long *first, long *last) {
    if (!here.region) {
        here.from = begin, here.end = step > 0 ? (end > begin ? end : begin) : end < begin ? end : begin;
        return next_of_loop(first, last);
    }
    const uint32_t round = here.loops / LOOPS;
    loop *l = &here.region->loops[here.loops++ % LOOPS];
    for (uint32_t turn, i = 1; (turn = load(&l->turn)) != 2 * round + 1; i++)
        if (may_begin(l, turn, round) && atomic_compare_exchange_strong(&l->turn, &turn, BEGINNING))
            set_up(l, begin, end, step, chunk, 2 * round + 1);
        else
            pause_or_yield(i); /* somebody sets it up, or is still in the loop that was here before */
    return next_of_loop(first, last);
}

HIDDEN void GOMP_loop_end_nowait(void);
HIDDEN void GOMP_loop_end_nowait(void) {
    if (here.region) atomic_fetch_add(&loop_of(here.region)->left, 1);
}

HIDDEN void GOMP_loop_end(void);
HIDDEN void GOMP_loop_end(void) {
    GOMP_loop_end_nowait();
    GOMP_barrier();
}

/* Calls of newer and of older compilers. */
#define DYNAMIC(name)                                                                                               \
    HIDDEN void GOMP_parallel_loop_##name(void (*)(void *), void *, unsigned, long, long, long, long, unsigned);    \
    HIDDEN void GOMP_parallel_loop_##name(void (*work)(void *), void *data, unsigned threads, long begin, long end, \
                                          long step, long chunk, unsigned flags) {                                  \
        (void)flags;                                                                                                \
        run(work, data, threads, begin, end, step, chunk);                                                          \
    }                                                                                                               \
    HIDDEN bool GOMP_loop_##name##_start(long, long, long, long, long *, long *);                                   \
    HIDDEN bool GOMP_loop_##name##_start(long begin, long end, long step, long chunk, long *first, long *last) {    \
        return start_loop(begin, end, step, chunk, first, last);                                                    \
    }                                                                                                               \
    HIDDEN bool GOMP_loop_##name##_next(long *, long *);                                                            \
    HIDDEN bool GOMP_loop_##name##_next(long *first, long *last) { return next_of_loop(first, last); }
DYNAMIC(nonmonotonic_dynamic)
DYNAMIC(dynamic)

HIDDEN int omp_get_thread_num(void);
HIDDEN int omp_get_thread_num(void) { return (int)here.number; }

HIDDEN int omp_get_num_threads(void);
HIDDEN int omp_get_num_threads(void) { return here.region ? (int)size_of(here.region, true) : 1; }

HIDDEN int omp_in_parallel(void);
HIDDEN int omp_in_parallel(void) { return within; }

HIDDEN double omp_get_wtime(void);
HIDDEN double omp_get_wtime(void) { return 1e-9 * (double)now(); }

int64_t dtconv_spin_ns(void) { return spin_ns; }

void dtconv_rouse_threads(void) {
    if (!own || within || !spin_ns || !atomic_load(&own->call.sleepers) || is_busy(own)) return;
    atomic_fetch_add(&own->call.value, 1); /* of a region that has no seats */
    wake(&own->call, INT32_MAX);
}

static void in_child(void) {
    own = NULL; /* its threads are the parent's */
    self = NULL;
    pthread_setspecific(own_key, NULL);
    here = (place){0};
    within = 0;
}

/* A number with B, K (also without a letter), M or G behind it, as OpenMP has it; 0: none. */
static size_t bytes_of(const char *text) {
    char *end;
    const unsigned long long number = text ? strtoull(text, &end, 10) : 0;
    if (!number || number > 1 << 20) return 0;
    const int letter = *end | 32;
    return (size_t)number << (letter == 'b' ? 0 : letter == 'm' ? 20 : letter == 'g' ? 30 : 10);
}

__attribute__((constructor)) static void prepare(void) {
    const char *policy = getenv("OMP_WAIT_POLICY");
    if (policy && !strcasecmp(policy, "passive")) spin_ns = inner_spin_ns = 0;
    if (policy && !strcasecmp(policy, "active")) spin_ns = inner_spin_ns = ACTIVE_SPIN_NS;
    const size_t wanted = bytes_of(getenv("OMP_STACKSIZE"));
    if (wanted) stack_bytes = wanted;
    pthread_key_create(&own_key, end_team);
    pthread_atfork(NULL, NULL, in_child);
}
#else
#include "dtconv.h"

int64_t dtconv_spin_ns(void) { return -1; }
void dtconv_rouse_threads(void) {}
#endif
