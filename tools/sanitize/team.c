/* A team of threads for ThreadSanitizer: what the compiler calls for OpenMP, on plain pthreads that it understands.
 *
 * GNU's OpenMP synchronises by futexes of its own, in which ThreadSanitizer sees nothing, so that every barrier would
 * be a race.  These are the few functions that the C library's pragmas become; a team is made anew for each region.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_THREADS = 64, MOST_LOOPS = 4096 };

/* A loop with a dynamic schedule; each is the n-th one of its region, for all threads. */
typedef struct {
    bool begun;
    long next, end, step, chunk;
} loop;

typedef struct {
    int size, begun; /* begun: loops with which the region begins */
    void (*work)(void *);
    void *data;
    pthread_barrier_t barrier;
    pthread_mutex_t lock; /* of the loops */
    loop loops[MOST_LOOPS];
} team;

typedef struct {
    team *of;
    int id;
} member;

static _Thread_local team *current; /* NULL outside of a region */
static _Thread_local int id, loops; /* loops: how many have begun */

static void *run_member(void *argument) {
    const member *m = argument;
    current = m->of, id = m->id, loops = m->of->begun;
    m->of->work(m->of->data);
    return NULL;
}

static void run_team(void (*work)(void *), void *data, unsigned threads, const loop *begun) {
    team *const outer = current;
    const int outer_id = id, outer_loops = loops;
    const int size = outer || threads < 1 ? 1 : threads < MOST_THREADS ? (int)threads : MOST_THREADS;
    team *t = calloc(1, sizeof *t);
    member members[MOST_THREADS];
    pthread_t others[MOST_THREADS];
    if (!t) abort();
    t->size = size, t->work = work, t->data = data;
    if (begun) t->begun = 1, t->loops[0] = *begun;
    pthread_barrier_init(&t->barrier, NULL, (unsigned)size);
    pthread_mutex_init(&t->lock, NULL);
    for (int i = 0; i < size; i++) members[i] = (member){t, i};
    for (int i = 1; i < size; i++)
        if (pthread_create(&others[i], NULL, run_member, &members[i])) abort();
    run_member(&members[0]);
    for (int i = 1; i < size; i++) pthread_join(others[i], NULL);
    pthread_barrier_destroy(&t->barrier);
    pthread_mutex_destroy(&t->lock);
    free(t);
    current = outer, id = outer_id, loops = outer_loops;
}

void GOMP_parallel(void (*work)(void *), void *data, unsigned threads, unsigned flags) {
    (void)flags;
    run_team(work, data, threads, NULL);
}

void GOMP_parallel_loop_nonmonotonic_dynamic(void (*work)(void *), void *data, unsigned threads, long start, long end,
                                             long step, long chunk, unsigned flags) {
    (void)flags;
    run_team(work, data, threads, &(loop){true, start, end, step, chunk});
}

void GOMP_barrier(void) {
    if (current) pthread_barrier_wait(&current->barrier);
}

/* The next chunk of the loop that this thread is in. */
bool GOMP_loop_nonmonotonic_dynamic_next(long *first, long *last) {
    loop *l = &current->loops[loops - 1];
    pthread_mutex_lock(&current->lock);
    const long from = l->next;
    l->next += l->chunk * l->step;
    pthread_mutex_unlock(&current->lock);
    *first = from;
    *last = from + l->chunk * l->step < l->end ? from + l->chunk * l->step : l->end;
    return from < l->end;
}

bool GOMP_loop_nonmonotonic_dynamic_start(long start, long end, long step, long chunk, long *first, long *last) {
    if (loops == MOST_LOOPS || step < 0) abort();
    pthread_mutex_lock(&current->lock);
    loop *l = &current->loops[loops++];
    if (!l->begun) *l = (loop){true, start, end, step, chunk};
    pthread_mutex_unlock(&current->lock);
    return GOMP_loop_nonmonotonic_dynamic_next(first, last);
}

void GOMP_loop_end(void) { GOMP_barrier(); }
void GOMP_loop_end_nowait(void) {}

int omp_get_thread_num(void) { return current ? id : 0; }
int omp_get_num_threads(void) { return current ? current->size : 1; }
int omp_in_parallel(void) { return current && current->size > 1; }
int omp_pause_resource_all(int kind) { return kind < 0; }

double omp_get_wtime(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
