// What a function may ask of its call: memory, output, parameters, timers, log and metrics.

#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static module_string_t borrowed(const char *words) {
    return (module_string_t){(uint8_t *)words, strlen(words)};
}

void text_of(module_string_t *to, const char *words) {
    module_string_dup(to, words);
}

void *ms_allocate(ms_call *call, size_t size) {
    size = (size + 15) & ~(size_t)15;
    block *block = call->memory;
    if (block == NULL || block->size - block->used < size) {
        size_t room = size > 65536 ? size : 65536;
        struct block *next = malloc(sizeof *next + room);
        if (next == NULL) abort();
        *next = (struct block){block, 0, room};
        call->memory = block = next;
    }
    void *memory = block->bytes + block->used;
    block->used += size;
    return memset(memory, 0, size);
}

void *push(ms_call *call, rows *to, const void *row, size_t size) {
    if (to->count == to->room) {
        size_t room = to->room * 2 + 16;
        char *grown = ms_allocate(call, room * size);
        if (to->count > 0) memcpy(grown, to->bytes, to->count * size);
        *to = (rows){grown, to->count, room};
    }
    return memcpy(to->bytes + size * to->count++, row, size);
}

static void emit(ms_call *call, size_t port, bool made, int64_t origin, const void *row) {
    if (port >= call->ports) ms_fail(call, "the function has no output at position %zu", port);
    collector *to = &call->collectors[port];
    if (to->row != NULL) push(call, &to->rows, row, to->row->size);
    push(call, &to->origins, &origin, sizeof origin);
    push(call, &to->made, &made, sizeof made);
}

void ms_emit(ms_call *call, const void *row) {
    emit(call, 0, false, call->row, row);
}

void ms_emit_at(ms_call *call, int64_t time, const void *row) {
    emit(call, 0, true, time, row);
}

void ms_emit_side(ms_call *call, size_t side, const void *row) {
    emit(call, side + 1, false, call->row, row);
}

static ms_text format(ms_call *call, const char *words, va_list values) {
    va_list again;
    va_copy(again, values);
    int length = vsnprintf(NULL, 0, words, values);
    char *text = ms_allocate(call, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, words, again);
    va_end(again);
    return (ms_text){text, (size_t)length};
}

ms_text ms_format(ms_call *call, const char *words, ...) {
    va_list values;
    va_start(values, words);
    ms_text text = format(call, words, values);
    va_end(values);
    return text;
}

void ms_reject(ms_call *call, const char *words, ...) {
    va_list values;
    va_start(values, words);
    ms_text text = format(call, words, values);
    va_end(values);
    rejected_t rejected = {.row = call->row};
    text_of(&rejected.reason, text.ptr);
    push(call, &call->rejected, &rejected, sizeof rejected);
    call->is_rejected = true;
}

_Noreturn void ms_fail_at(ms_call *call, const char *file, int line, const char *words, ...) {
    va_list values;
    va_start(values, words);
    ms_text text = format(call, words, values);
    va_end(values);
    ms_text whole = ms_format(call, "%s at %s:%d", text.ptr, file, line);
    module_string_t message = {(uint8_t *)whole.ptr, whole.len};
    flush_prints();
    millstream_function_context_panicked(&message);
    __builtin_trap();
}

int ms_compare(ms_text one, ms_text other) {
    size_t shorter = one.len < other.len ? one.len : other.len;
    int order = shorter == 0 ? 0 : memcmp(one.ptr, other.ptr, shorter);
    return order != 0 ? order : (one.len > other.len) - (one.len < other.len);
}

static ms_text parameter(ms_call *call, const char *name) {
    for (const ms_parameter *each = call->function->parameters; each != NULL && each->name != NULL; each++) {
        if (strcmp(each->name, name) != 0) continue;
        module_string_t key = borrowed(name), value;
        if (!millstream_function_context_parameter(&key, &value)) {
            return (ms_text){each->standard, each->standard == NULL ? 0 : strlen(each->standard)};
        }
        ms_text text = ms_format(call, "%.*s", (int)value.len, (char *)value.ptr);
        module_string_free(&value);
        return text;
    }
    ms_fail(call, "the function has no parameter `%s`", name);
}

int64_t ms_parameter_integer(ms_call *call, const char *name) {
    return strtoll(parameter(call, name).ptr, NULL, 10);
}

double ms_parameter_number(ms_call *call, const char *name) {
    return strtod(parameter(call, name).ptr, NULL);
}

bool ms_parameter_boolean(ms_call *call, const char *name) {
    return ms_compare(parameter(call, name), MS_TEXT("true")) == 0;
}

ms_text ms_parameter_text(ms_call *call, const char *name) {
    return parameter(call, name);
}

static void change_timer(ms_call *call, ms_clock clock, int64_t time, bool set) {
    timer_change change = {call->key, clock, time, set};
    timer_change *known = (timer_change *)call->timers.bytes;
    // A timer's last change counts. Mostly the last timer is the one that comes again.
    for (size_t at = call->timers.count; at-- > 0 && known[at].key == change.key;) {
        if (known[at].clock == clock && known[at].time == time) {
            known[at].set = set;
            return;
        }
    }
    push(call, &call->timers, &change, sizeof change);
}

void ms_set_timer(ms_call *call, ms_clock clock, int64_t time) {
    change_timer(call, clock, time, true);
}

void ms_clear_timer(ms_call *call, ms_clock clock, int64_t time) {
    change_timer(call, clock, time, false);
}

int64_t ms_watermark(ms_call *call) {
    return call->watermark;
}

int64_t ms_event_time(ms_call *call) {
    return call->event_time;
}

int64_t ms_now(ms_call *call) {
    if (!call->has_now) call->now = millstream_function_context_now();
    call->has_now = true;
    return call->now;
}

// splitmix64 from the call's seed.
uint64_t ms_random(ms_call *call) {
    if (!call->has_seed) call->seed = millstream_function_context_random();
    call->has_seed = true;
    call->seed += 0x9e3779b97f4a7c15;
    uint64_t mixed = (call->seed ^ call->seed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

void ms_log(ms_call *call, ms_level level, const char *words, ...) {
    va_list values;
    va_start(values, words);
    ms_text text = format(call, words, values);
    va_end(values);
    module_string_t message = {(uint8_t *)text.ptr, text.len};
    millstream_function_context_log((uint8_t)level, &message);
}

void ms_count(ms_call *call, const char *metric, uint64_t by) {
    (void)call;
    module_string_t name = borrowed(metric);
    millstream_function_context_count(&name, by);
}

void ms_gauge(ms_call *call, const char *metric, double value) {
    (void)call;
    module_string_t name = borrowed(metric);
    millstream_function_context_gauge(&name, value);
}

ms_task_info ms_task(ms_call *call) {
    millstream_function_context_task_info_t task;
    millstream_function_context_task(&task);
    ms_text job = ms_format(call, "%.*s", (int)task.job.len, (char *)task.job.ptr);
    ms_text name = ms_format(call, "%.*s", (int)task.operator_.len, (char *)task.operator_.ptr);
    ms_task_info info = {job, name, task.subtask, task.parallelism, task.attempt};
    millstream_function_context_task_info_free(&task);
    return info;
}
