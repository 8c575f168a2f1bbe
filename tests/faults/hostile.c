/* An agent that does not want to end: ignores signals, leaves its session, clears its environment,
 * forks again and again for a bounded time, and holds stdout. argv[1]: seconds; argv[2]: how many chains. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void deaf(void) {
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

static void chain(double end) {
    while (now() < end) {
        pid_t child = fork();
        if (child > 0) _exit(0);
        if (child == 0) {
            setsid();
            clearenv();
        }
        usleep(200);
    }
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    int chains = argc > 2 ? atoi(argv[2]) : 4;
    double end = now() + seconds;
    deaf();
    for (int i = 0; i < chains; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() != 0) _exit(0);
            clearenv();
            if (i % 2) { while (now() < end) usleep(10000); }
            else chain(end);
            _exit(0);
        }
    }
    puts("ready");
    fflush(stdout);
    while (now() < end) usleep(10000);
    return 0;
}
