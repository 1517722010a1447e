// There is no file and no terminal: what is printed is lines of the job's log, at the level info for `stdout` and warn for
// `stderr`. `printf` and what formats text share their code in the C library, which would have the component import the files
// of WASI; these take the place of its ends.

#include "internal.h"

#include <stdio.h>
#include <string.h>

// An unfinished line.
typedef struct {
    uint8_t bytes[4096];
    size_t count;
} line;

static line out, err;

// How many bytes the character has that begins here; 0 where none does.
static size_t character(const uint8_t *at, size_t left) {
    size_t count = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    if (count > left) return 0;
    for (size_t next = 1; next < count; next++) {
        if ((at[next] & 0xc0) != 0x80) return 0;
    }
    // Too long for what they say, halves of surrogate pairs, and beyond the last character.
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f)) return 0;
    if ((*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] > 0x8f)) return 0;
    return count;
}

// Logs a number of bytes of a line, and keeps what is behind them. What is no UTF-8 is shown as `?`, as the log has text.
static void log_line(line *from, ms_level level, size_t count) {
    for (size_t at = 0, step; at < count; at += step) {
        step = character(from->bytes + at, count - at);
        if (step == 0) from->bytes[at] = '?', step = 1;
    }
    module_string_t message = {from->bytes, count};
    millstream_function_context_log((uint8_t)level, &message);
    from->count -= count;
    memmove(from->bytes, from->bytes + count, from->count);
}

static void print(FILE *file, const uint8_t *bytes, size_t count) {
    line *to = file == stderr ? &err : &out;
    ms_level level = file == stderr ? MS_WARN : MS_INFO;
    for (size_t at = 0; at < count; at++) {
        if (bytes[at] == '\n') {
            log_line(to, level, to->count);
            continue;
        }
        if (to->count == sizeof to->bytes) {
            // A character stays whole.
            size_t whole = to->count;
            while (whole > to->count - 4 && (to->bytes[whole - 1] & 0xc0) == 0x80) whole--;
            if (to->bytes[whole - 1] >= 0xc0) whole--;
            log_line(to, level, whole);
        }
        to->bytes[to->count++] = bytes[at];
    }
}

void flush_prints(void) {
    fflush(stdout);
    if (out.count > 0) log_line(&out, MS_INFO, out.count);
    if (err.count > 0) log_line(&err, MS_WARN, err.count);
}

// The C library's own structure begins with words of one size, of which these are asked for. Where it keeps the function
// that writes, and with it the others, says whether it is as it is known to be.
enum { WRITE_END = 4, WRITE_AT = 5, WRITE_FUNCTION = 8, BEHIND_FUNCTION_BUFFER = 2 };

static size_t write_file(FILE *file, const uint8_t *bytes, size_t count, void *itself) {
    uint8_t **words = (uint8_t **)file;
    size_t function = WRITE_FUNCTION;
    while (function < WRITE_FUNCTION + 2 && words[function] != (uint8_t *)itself) function++;
    if (function == WRITE_FUNCTION + 2) return count;
    uint8_t **start = &words[function - 2], *buffer = words[function + BEHIND_FUNCTION_BUFFER];
    size_t size = (size_t)words[function + BEHIND_FUNCTION_BUFFER + 1];
    print(file, *start, (size_t)(words[WRITE_AT] - *start));
    print(file, bytes, count);
    words[WRITE_END] = buffer + size;
    words[WRITE_AT] = *start = buffer;
    return count;
}

size_t __stdio_write(FILE *file, const unsigned char *bytes, size_t count) {
    return write_file(file, bytes, count, (void *)__stdio_write);
}

size_t __stdout_write(FILE *file, const unsigned char *bytes, size_t count) {
    return write_file(file, bytes, count, (void *)__stdout_write);
}

int __stdio_close(void *file) {
    (void)file;
    return 0;
}

int64_t __stdio_seek(void *file, int64_t offset, int whence) {
    (void)file, (void)offset, (void)whence;
    return -1;
}
