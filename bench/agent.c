/* A fake agent that costs almost nothing, so that what is measured is the loop around it.
 *
 *   BENCH_TIMES=FILE    append CLOCK_MONOTONIC in nanoseconds, read first thing in main()
 *   BENCH_BYTES=N       print at least N bytes of claude-like stream-json instead of a few words
 *
 * Called `claude` it prints three lines of stream-json, called anything else a few words.
 *
 * It never claims completion and exits 0. `--help`, or RALPH_PROBE in the environment, prints a
 * help text and no time: a probe is no turn.
 */
#define _GNU_SOURCE /* basename */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SESSION "\"session_id\":\"978aef50-620c-4b60-bb75-b3abf27fe1df\""
#define ENVELOPE "\"parent_tool_use_id\":null," SESSION ",\"uuid\":\"80060963-3ded-4e8e-b5b6-1642b9011caa\""
#define MESSAGE "\"id\":\"msg_fc0f076759964df6a4272db5\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-opus-4-8\""
#define USAGE "\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":100,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"output_tokens\":1},\"context_management\":null"
#define ID "toolu_000000000000000000000000" /* its digits are counted up while printing */
#define ID_DIGITS 24
#define ROUND_SIZE (256 * 1024)
#define MOST_IDS 512

static char round_text[ROUND_SIZE + 16 * 1024];
static size_t round_length;
static char *id_digits[MOST_IDS];
static int id_pairs[MOST_IDS]; /* which call of the round the id belongs to */
static int ids, calls;

static void append_time(const char *path) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char line[32];
    int length = snprintf(line, sizeof line, "%lld\n", now.tv_sec * 1000000000LL + now.tv_nsec);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0 || write(file, line, length) != length)
        _exit(3);
    close(file);
}

static void print_all(const char *text, size_t length) {
    while (length > 0) {
        ssize_t written = write(1, text, length);
        if (written < 0)
            exit(4);
        text += written;
        length -= written;
    }
}

static void add(const char *text) {
    size_t length = strlen(text);
    memcpy(round_text + round_length, text, length);
    round_length += length;
}

static void add_id(int call) {
    id_digits[ids] = round_text + round_length + strlen("toolu_");
    id_pairs[ids++] = call;
    add(ID);
}

/* Words with the escapes that code has: a newline every forty characters or so, some quotes. */
static void add_output(int lines) {
    for (int line = 0; line < lines; line++) {
        char text[96];
        snprintf(text, sizeof text, "%5d\\tdef turn_%d(self, order: \\\"Order\\\") -> None:\\n", line, line);
        add(text);
    }
}

/* What an agent does most: says something, calls a tool, reads a few KB of its output. */
static void add_step(void) {
    int call = calls++;
    add("{\"type\":\"assistant\",\"message\":{" MESSAGE ",\"content\":[{\"type\":\"text\",\"text\":\""
        "The parser drops the last line when the stream ends without a newline. I will read the "
        "framer first, then write a failing test, and only then change it.\"}]," USAGE "}," ENVELOPE "}\n");
    add("{\"type\":\"assistant\",\"message\":{" MESSAGE ",\"content\":[{\"type\":\"tool_use\",\"id\":\"");
    add_id(call);
    add("\",\"name\":\"Bash\",\"input\":{\"command\":\"cat src/module.py && python -m pytest -q\","
        "\"description\":\"Read the module and run its tests\"}}]," USAGE "}," ENVELOPE "}\n");
    add("{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[{\"tool_use_id\":\"");
    add_id(call);
    add("\",\"type\":\"tool_result\",\"content\":\"");
    add_output(40 + call % 40);
    add("\",\"is_error\":false}]}," ENVELOPE ",\"timestamp\":\"2026-11-15T06:25:31.517Z\","
        "\"tool_use_result\":{\"stdout\":\"");
    add_output(40 + call % 40); /* the real CLI says it twice */
    add("\",\"stderr\":\"\",\"interrupted\":false,\"isImage\":false}}\n");
}

static void count_up(unsigned long long first) {
    for (int i = 0; i < ids; i++) {
        char digits[ID_DIGITS + 1];
        snprintf(digits, sizeof digits, "%0*llu", ID_DIGITS, first + id_pairs[i]);
        memcpy(id_digits[i], digits, ID_DIGITS);
    }
}

static const char init[] = "{\"type\":\"system\",\"subtype\":\"init\",\"cwd\":\"/work\"," SESSION
                           ",\"tools\":[\"Bash\"],\"model\":\"claude-opus-4-8\"}\n";
static const char said[] =
    "{\"type\":\"assistant\",\"message\":{" MESSAGE ",\"content\":[{\"type\":\"text\",\"text\":\"Not yet.\"}],"
    USAGE "}," ENVELOPE "}\n";
static const char result[] =
    "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":3," SESSION
    ",\"result\":\"Not yet.\",\"total_cost_usd\":0.0123,\"usage\":{\"input_tokens\":1200,"
    "\"output_tokens\":340},\"permission_denials\":[]}\n";

static void print_short_stream(void) {
    print_all(init, sizeof init - 1);
    print_all(said, sizeof said - 1);
    print_all(result, sizeof result - 1);
}

static void print_stream(unsigned long long bytes) {
    while (round_length < ROUND_SIZE && ids + 2 <= MOST_IDS)
        add_step();
    print_all(init, sizeof init - 1);
    unsigned long long printed = 0, first = 0;
    for (; printed < bytes; printed += round_length, first += calls) {
        count_up(first);
        print_all(round_text, round_length);
    }
    print_all(result, sizeof result - 1);
}

int main(int count, char **words) {
    if ((count > 1 && strcmp(words[1], "--help") == 0) || getenv("RALPH_PROBE")) {
        puts("usage: agent [--help] PROMPT");
        return 0;
    }
    const char *times = getenv("BENCH_TIMES"), *bytes = getenv("BENCH_BYTES");
    if (times)
        append_time(times);
    if (bytes)
        print_stream(strtoull(bytes, NULL, 10));
    else if (strcmp(basename(words[0]), "claude") == 0)
        print_short_stream();
    else
        puts("I read the code and changed a line.\nThere is more to do.");
    return 0;
}
