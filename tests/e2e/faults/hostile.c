/* An agent that does not want to end: it ignores signals, forks twice, starts sessions of its own,
 * empties its environment, forks again and again for a bounded time, and holds stdout.
 *
 * Of its arguments the numbers are: seconds to live, and how many to leave behind. The last argument,
 * unless a number, is what it says when all of them are at work.
 *
 * Each of its processes holds a lock on the program's file, so that the kernel itself can say whether
 * one is left: looking through /proc can miss those that are always new. For the same reason, whoever
 * wants to be rid of them deletes that file. */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double end;
static int own_file;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void be_deaf(void) {
    const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) signal(numbers[i], SIG_IGN);
}

/* Also for those who look from outside: clearenv alone leaves /proc/PID/environ as it was. */
static void empty_environment(void) {
    for (char **entry = environ; entry && *entry; entry++) memset(*entry, 0, strlen(*entry));
    clearenv();
}

/* Shared with every process that is forked, until the last of them is gone. */
static void hold_own_file(void) {
    own_file = open("/proc/self/exe", O_RDONLY);
    if (own_file < 0 || flock(own_file, LOCK_SH)) {
        perror("hostile: cannot lock its own file");
        exit(2);
    }
}

static int is_over(void) {
    struct stat file;
    return now() >= end || fstat(own_file, &file) || !file.st_nlink;
}

static void tell(int to) {
    if (write(to, "", 1) != 1) _exit(1);
}

static void sit(int to) {
    tell(to);
    while (!is_over()) usleep(10000);
}

/* Always someone new, in a session of its own. */
static void run_away(int to) {
    for (long forks = 0; !is_over();) {
        pid_t child = fork();
        if (child > 0) _exit(0);
        if (child == 0) {
            setsid();
            if (++forks == 5) tell(to);
        }
        usleep(200);
    }
}

static void leave_behind(int which, int to) {
    if (fork() != 0) return;
    setsid();
    if (fork() != 0) _exit(0);
    if (which % 2) sit(to);
    else run_away(to);
    _exit(0);
}

int main(int argc, char **argv) {
    double numbers[] = {5, 4};
    size_t given = 0;
    for (int i = 1; i < argc; i++)
        if (isdigit((unsigned char)*argv[i]) && given < 2) numbers[given++] = atof(argv[i]);
    const char *words = isdigit((unsigned char)*argv[argc - 1]) || argc < 2 ? "ready" : argv[argc - 1];
    end = now() + numbers[0];
    hold_own_file();
    be_deaf();
    empty_environment();
    int ends[2];
    if (pipe(ends)) return 2;
    for (int i = 0; i < (int)numbers[1]; i++) leave_behind(i, ends[1]);
    for (int i = 0; i < (int)numbers[1]; i++) {
        char one;
        while (read(ends[0], &one, 1) != 1) usleep(100);
    }
    puts(words);
    fflush(stdout);
    while (!is_over()) usleep(10000);
    return 0;
}
