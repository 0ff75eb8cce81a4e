/* Steps the clock of programs that load this (LD_PRELOAD) by the number of seconds, 8 bytes, in the file that
   CHAOS_CLOCK names. It steps only the time of day; monotonic clocks go on as they are. (libfaketime breaks
   clock_nanosleep, and with it every sleep of Python, when it is told to leave monotonic clocks alone.) */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset(void) {
    static volatile long long *shared;
    if (!shared) {
        const char *path = getenv("CHAOS_CLOCK");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *seen = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ, MAP_SHARED, file, 0);
        if (file >= 0) close(file);
        if (seen == MAP_FAILED) return 0;
        shared = seen;
    }
    return *shared;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(clock, now);
    if (!answer && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return answer;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec fine;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &fine)) return -1;
    now->tv_sec = fine.tv_sec;
    now->tv_usec = fine.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec fine;
    clock_gettime(CLOCK_REALTIME, &fine);
    if (now) *now = fine.tv_sec;
    return fine.tv_sec;
}

/* As the kernel waits for a time of day: until the clock, stepped or not, says so. */
int sem_timedwait(sem_t *restrict one, const struct timespec *restrict until) {
    static int (*real)(sem_t *restrict, const struct timespec *restrict);
    if (!real)
        real = (int (*)(sem_t *restrict, const struct timespec *restrict))dlsym(RTLD_NEXT, "sem_timedwait");
    for (;;) {
        struct timespec now, next = *until;
        long long ahead = offset();
        next.tv_sec -= ahead;
        clock_gettime(CLOCK_REALTIME, &now);
        now.tv_sec += 1 - ahead;
        if (next.tv_sec > now.tv_sec || (next.tv_sec == now.tv_sec && next.tv_nsec > now.tv_nsec)) next = now;
        if (!real(one, &next)) return 0;
        if (errno != ETIMEDOUT) return -1;
        clock_gettime(CLOCK_REALTIME, &now);
        if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
}
