// The exports of a component: what the host calls, taken apart into calls of a function for each row, timer, group or
// window.
//
// One instance is one open function. The bindings free what a call returns; what it was handed is freed here, when its
// memory goes.

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef exports_millstream_function_process_function_keyed_batch_t keyed_batch_t;
typedef exports_millstream_function_process_function_fired_t fired_t;
typedef exports_millstream_function_aggregate_function_accumulated_t accumulated_t;
typedef exports_millstream_function_aggregate_function_list_window_t windows_t;
typedef millstream_function_types_times_t times_t;

static const ms_function *opened;

typedef struct {
    void *what;
    release *how;
} to_release;

void release_later(ms_call *call, void *what, release *how) {
    to_release each = {what, how};
    push(call, &call->releases, &each, sizeof each);
}

static const ms_row *row_of(const ms_function *function, size_t port) {
    return port == 0 ? function->output : function->sides[port - 1].row;
}

// Starts a call with so many keys.
static ms_call begin(uint32_t keys, int64_t watermark) {
    ms_call call = {.function = opened, .keys = keys, .watermark = watermark, .event_time = INT64_MIN};
    call.ports = 1;
    while (opened->sides != NULL && opened->sides[call.ports - 1].name != NULL) call.ports++;
    call.collectors = ms_allocate(&call, call.ports * sizeof(collector));
    for (size_t port = 0; port < call.ports; port++) call.collectors[port].row = row_of(opened, port);
    begin_states(&call);
    return call;
}

static void send_timers(ms_call *call, ms_clock clock, bool set) {
    const timer_change *changes = (const timer_change *)call->timers.bytes;
    positions_t keys = {ms_allocate(call, call->timers.count * sizeof(uint32_t) + 1), 0};
    module_list_s64_t times = {ms_allocate(call, call->timers.count * sizeof(int64_t) + 1), 0};
    for (size_t at = 0; at < call->timers.count; at++) {
        if (changes[at].clock != clock || changes[at].set != set) continue;
        keys.ptr[keys.len++] = changes[at].key;
        times.ptr[times.len++] = changes[at].time;
    }
    if (keys.len == 0) return;
    if (set) millstream_function_timers_set((uint8_t)clock, &keys, &times);
    else millstream_function_timers_clear((uint8_t)clock, &keys, &times);
}

// Hands over what was written, and frees what the call was handed.
static void end(ms_call *call) {
    flush_prints();
    flush_states(call);
    for (ms_clock clock = MS_EVENT; clock <= MS_PROCESSING; clock++) {
        send_timers(call, clock, false);
        send_timers(call, clock, true);
    }
    const to_release *releases = (const to_release *)call->releases.bytes;
    for (size_t at = 0; at < call->releases.count; at++) releases[at].how(releases[at].what);
    for (block *block = call->memory, *next; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
}

static bool is_each(const int64_t *origins, size_t count, size_t call_rows) {
    if (count != call_rows) return false;
    for (size_t at = 0; at < count; at++) {
        if (origins[at] != (int64_t)at) return false;
    }
    return true;
}

// One output of rows that all come from rows of the call, or all have their own time.
static output_t output_of(const collector *from, uint32_t port, size_t start, size_t count, size_t call_rows) {
    const int64_t *origins = (const int64_t *)from->origins.bytes + start;
    output_t output = {.port = port, .rows = (uint32_t)count};
    if (((const bool *)from->made.bytes)[start]) {
        output.origin.tag = MILLSTREAM_FUNCTION_TYPES_ORIGIN_MADE;
        output.origin.val.made = (times_t){owned(count, sizeof(int64_t)), count};
        memcpy(output.origin.val.made.ptr, origins, count * sizeof(int64_t));
    } else if (is_each(origins, count, call_rows)) {
        output.origin.tag = MILLSTREAM_FUNCTION_TYPES_ORIGIN_EACH;
    } else {
        output.origin.tag = MILLSTREAM_FUNCTION_TYPES_ORIGIN_PICKED;
        output.origin.val.picked = (positions_t){owned(count, sizeof(uint32_t)), count};
        for (size_t at = 0; at < count; at++) output.origin.val.picked.ptr[at] = (uint32_t)origins[at];
    }
    size_t size = from->row == NULL ? 0 : from->row->size;
    write_columns(from->row, from->rows.bytes + start * size, count, &output.columns);
    return output;
}

// What the collectors and rejections of a call come to.
static outcome_t outcome_of(ms_call *call, size_t call_rows) {
    rows outputs = {0};
    for (uint32_t port = 0; port < call->ports; port++) {
        const collector *from = &call->collectors[port];
        const bool *made = (const bool *)from->made.bytes;
        for (size_t start = 0, next; start < from->origins.count; start = next) {
            for (next = start + 1; next < from->origins.count && made[next] == made[start]; next++) continue;
            output_t output = output_of(from, port, start, next - start, call_rows);
            push(call, &outputs, &output, sizeof output);
        }
    }
    outcome_t outcome = {{owned(outputs.count, sizeof(output_t)), outputs.count},
                         {owned(call->rejected.count, sizeof(rejected_t)), call->rejected.count}};
    if (outputs.count > 0) memcpy(outcome.outputs.ptr, outputs.bytes, outputs.count * sizeof(output_t));
    if (call->rejected.count > 0) {
        memcpy(outcome.rejected.ptr, call->rejected.bytes, call->rejected.count * sizeof(rejected_t));
    }
    return outcome;
}

// Before a row's function: where the outputs stand, to which they go back if it refuses the row.
static void start_row(ms_call *call, uint32_t row, uint32_t key, const times_t *times, size_t *counts) {
    call->row = row;
    call->key = key;
    call->is_rejected = false;
    if (times != NULL && row < times->len) call->event_time = times->ptr[row];
    for (size_t port = 0; port < call->ports; port++) counts[port] = call->collectors[port].origins.count;
}

static void end_row(ms_call *call, const size_t *counts) {
    for (size_t port = 0; call->is_rejected && port < call->ports; port++) {
        collector *to = &call->collectors[port];
        to->origins.count = to->made.count = counts[port];
        if (to->row != NULL) to->rows.count = counts[port];
    }
}

static bool refuse(module_string_t *error, const char *words) {
    text_of(error, words);
    return false;
}

static bool parameter_fits(const ms_parameter *each, const char *text) {
    char *rest = NULL;
    switch (each->type) {
    case MS_BOOLEAN: return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    case MS_INT32:
    case MS_INT64: strtoll(text, &rest, 10); return *text != 0 && *rest == 0;
    case MS_FLOAT32:
    case MS_FLOAT64: strtod(text, &rest); return *text != 0 && *rest == 0;
    default: return true;
    }
}

static bool check_parameters(const ms_function *function, module_string_t *error) {
    static const char *const TYPES[] = {"boolean", "int32", "int64", "float32", "float64"};
    for (const ms_parameter *each = function->parameters; each != NULL && each->name != NULL; each++) {
        module_string_t name = {(uint8_t *)each->name, strlen(each->name)}, value;
        const char *type = each->type <= MS_FLOAT64 ? TYPES[each->type] : "utf8";
        char words[512];
        if (!millstream_function_context_parameter(&name, &value)) {
            if (each->standard != NULL) continue;
            snprintf(words, sizeof words, "parameter `%s` is missing: expected a value of type %s in the job file",
                     each->name, type);
            return refuse(error, words);
        }
        char text[256];
        snprintf(text, sizeof text, "%.*s", (int)value.len, (char *)value.ptr);
        module_string_free(&value);
        if (!parameter_fits(each, text)) {
            snprintf(words, sizeof words, "parameter `%s`: found `%s`, expected %s", each->name, text, type);
            return refuse(error, words);
        }
    }
    return true;
}

const char *missing_pointer(const ms_function *function) {
    switch (function->kind) {
    case MS_MAP: return function->map == NULL ? "map" : NULL;
    case MS_PROCESS: return function->process == NULL ? "process" : NULL;
    case MS_AGGREGATE:
        if (function->accumulator == NULL) return "accumulator";
        return function->add == NULL ? "add" : function->finish == NULL ? "finish" : NULL;
    case MS_WINDOW: return function->apply == NULL ? "apply" : NULL;
    }
    return "kind";
}

static bool open(module_string_t *name, ms_kind kind, module_string_t *error) {
    const ms_function *found = NULL;
    for (size_t at = 0; at < MS_THE_MODULE.count; at++) {
        const ms_function *each = &MS_THE_MODULE.functions[at];
        if (strlen(each->name) == name->len && memcmp(each->name, name->ptr, name->len) == 0) found = each;
    }
    module_string_free(name);
    if (found == NULL) return refuse(error, "the module has no function of this name");
    if (found->kind != kind) return refuse(error, "the function is of another kind");
    const char *missing = missing_pointer(found);
    if (missing != NULL) {
        char words[256];
        snprintf(words, sizeof words, "`%s` has no `.%s` in the table of functions", found->name, missing);
        return refuse(error, words);
    }
    if (!check_parameters(found, error) || !open_states(found, error)) return false;
    opened = found;
    if (found->open != NULL) {
        ms_call call = begin(0, INT64_MIN);
        found->open(&call);
        end(&call);
    }
    return true;
}

static void close(void) {
    if (opened == NULL) return;
    if (opened->close != NULL) {
        ms_call call = begin(0, INT64_MIN);
        opened->close(&call);
        end(&call);
    }
    close_states(opened);
    opened = NULL;
}

static void hook(void (*function)(ms_call *), outcome_t *ret) {
    ms_call call = begin(0, INT64_MIN);
    if (function != NULL) function(&call);
    *ret = outcome_of(&call, 0);
    end(&call);
}

static const char *at(const ms_row *row, const char *bytes, size_t position) {
    return row == NULL ? bytes : bytes + row->size * position;
}

void exports_millstream_function_manifest_describe(module_string_t *ret) {
    describe(ret);
}

bool exports_millstream_function_map_function_open(module_string_t *function, module_string_t *err) {
    return open(function, MS_MAP, err);
}

bool exports_millstream_function_map_function_apply(batch_t *input, times_t *times, outcome_t *ret,
                                                    module_string_t *err) {
    ms_call call = begin(0, INT64_MIN);
    release_later(&call, input, (release *)millstream_function_types_batch_free);
    if (times != NULL) release_later(&call, times, (release *)millstream_function_types_times_free);
    const char *wrong = NULL;
    const char *read = read_rows(&call, opened->input, input, &wrong);
    size_t *counts = ms_allocate(&call, call.ports * sizeof(size_t));
    for (uint32_t row = 0; wrong == NULL && row < input->rows; row++) {
        start_row(&call, row, 0, times, counts);
        opened->map(&call, at(opened->input, read, row));
        end_row(&call, counts);
    }
    if (wrong == NULL) *ret = outcome_of(&call, input->rows);
    end(&call);
    return wrong == NULL || refuse(err, wrong);
}

void exports_millstream_function_map_function_close(void) {
    close();
}

bool exports_millstream_function_process_function_open(module_string_t *function, module_string_t *err) {
    return open(function, MS_PROCESS, err);
}

bool exports_millstream_function_process_function_process(keyed_batch_t *input, outcome_t *ret, module_string_t *err) {
    ms_call call = begin(input->keys.rows, input->watermark);
    release_later(&call, input, (release *)exports_millstream_function_process_function_keyed_batch_free);
    const char *wrong = NULL;
    const char *read = read_rows(&call, opened->input, &input->rows, &wrong);
    const char *keys = read_rows(&call, opened->key, &input->keys, &wrong);
    const times_t *times = input->times.is_some ? &input->times.val : NULL;
    size_t *counts = ms_allocate(&call, call.ports * sizeof(size_t));
    for (uint32_t row = 0; wrong == NULL && row < input->rows.rows; row++) {
        uint32_t key = input->key_of_row.ptr[row];
        start_row(&call, row, key, times, counts);
        opened->process(&call, at(opened->key, keys, key), at(opened->input, read, row));
        end_row(&call, counts);
    }
    if (wrong == NULL) *ret = outcome_of(&call, input->rows.rows);
    end(&call);
    return wrong == NULL || refuse(err, wrong);
}

bool exports_millstream_function_process_function_on_timer(fired_t *fired, outcome_t *ret, module_string_t *err) {
    ms_call call = begin(fired->keys.rows, fired->watermark);
    release_later(&call, fired, (release *)exports_millstream_function_process_function_fired_free);
    const char *wrong = NULL;
    const char *keys = read_rows(&call, opened->key, &fired->keys, &wrong);
    for (uint32_t row = 0; wrong == NULL && opened->on_timer != NULL && row < fired->keys.rows; row++) {
        call.row = call.key = row;
        opened->on_timer(&call, at(opened->key, keys, row), (ms_timer){fired->clock, fired->times.ptr[row]});
    }
    if (wrong == NULL) *ret = outcome_of(&call, fired->keys.rows);
    end(&call);
    return wrong == NULL || refuse(err, wrong);
}

void exports_millstream_function_process_function_close(void) {
    close();
}

bool exports_millstream_function_aggregate_function_open(module_string_t *function, module_string_t *err) {
    return open(function, MS_AGGREGATE, err);
}

// The accumulators of cells; those that are absent are made.
static char *accumulators_of(ms_call *call, const cells_t *cells, const char **wrong) {
    char *read = read_rows(call, opened->accumulator, &cells->values, wrong);
    size_t size = opened->accumulator->size;
    for (uint32_t group = 0; *wrong == NULL && group < cells->values.rows; group++) {
        if (group / 8 < cells->present.len && cells->present.ptr[group / 8] >> (group % 8) & 1) continue;
        memset(read + group * size, 0, size);
        if (opened->create != NULL) opened->create(call, read + group * size);
    }
    return read;
}

bool exports_millstream_function_aggregate_function_accumulate(batch_t *input, times_t *times,
                                                               module_list_u32_t *group_of_row, cells_t *cells,
                                                               accumulated_t *ret, module_string_t *err) {
    ms_call call = begin(0, INT64_MIN);
    release_later(&call, input, (release *)millstream_function_types_batch_free);
    if (times != NULL) release_later(&call, times, (release *)millstream_function_types_times_free);
    release_later(&call, group_of_row, (release *)module_list_u32_free);
    release_later(&call, cells, (release *)millstream_function_types_cells_free);
    const char *wrong = NULL;
    const char *read = read_rows(&call, opened->input, input, &wrong);
    char *accumulators = accumulators_of(&call, cells, &wrong);
    size_t size = opened->accumulator->size;
    size_t *counts = ms_allocate(&call, call.ports * sizeof(size_t));
    for (uint32_t row = 0; wrong == NULL && row < input->rows; row++) {
        start_row(&call, row, 0, times, counts);
        opened->add(&call, accumulators + group_of_row->ptr[row] * size, at(opened->input, read, row));
    }
    if (wrong == NULL) {
        *ret = (accumulated_t){.accumulators = {.rows = cells->values.rows}};
        write_columns(opened->accumulator, accumulators, cells->values.rows, &ret->accumulators.columns);
        ret->rejected.len = call.rejected.count;
        ret->rejected.ptr = owned(call.rejected.count, sizeof(rejected_t));
        if (call.rejected.count > 0) {
            memcpy(ret->rejected.ptr, call.rejected.bytes, call.rejected.count * sizeof(rejected_t));
        }
    }
    end(&call);
    return wrong == NULL || refuse(err, wrong);
}

bool exports_millstream_function_aggregate_function_merge(batch_t *into, batch_t *other, batch_t *ret,
                                                          module_string_t *err) {
    ms_call call = begin(0, INT64_MIN);
    release_later(&call, into, (release *)millstream_function_types_batch_free);
    release_later(&call, other, (release *)millstream_function_types_batch_free);
    const char *wrong = opened->merge == NULL ? "the function does not merge accumulators" : NULL;
    char *accumulators = read_rows(&call, opened->accumulator, into, &wrong);
    const char *others = read_rows(&call, opened->accumulator, other, &wrong);
    size_t size = opened->accumulator->size;
    for (uint32_t pair = 0; wrong == NULL && pair < into->rows; pair++) {
        opened->merge(&call, accumulators + pair * size, others + pair * size);
    }
    if (wrong == NULL) {
        *ret = (batch_t){.rows = into->rows};
        write_columns(opened->accumulator, accumulators, into->rows, &ret->columns);
    }
    end(&call);
    return wrong == NULL || refuse(err, wrong);
}

bool exports_millstream_function_aggregate_function_finish(batch_t *accumulators, batch_t *keys,
                                                           module_list_u32_t *key_of_group, windows_t *windows,
                                                           outcome_t *ret, module_string_t *err) {
    ms_call call = begin(0, INT64_MIN);
    release_later(&call, accumulators, (release *)millstream_function_types_batch_free);
    release_later(&call, keys, (release *)millstream_function_types_batch_free);
    release_later(&call, key_of_group, (release *)module_list_u32_free);
    release_later(&call, windows, (release *)exports_millstream_function_aggregate_function_list_window_free);
    const char *wrong = NULL;
    const char *read = read_rows(&call, opened->accumulator, accumulators, &wrong);
    const char *key_rows = read_rows(&call, opened->key, keys, &wrong);
    for (uint32_t group = 0; wrong == NULL && group < accumulators->rows; group++) {
        call.row = group;
        ms_window window = {windows->ptr[group].start, windows->ptr[group].end};
        const char *key = at(opened->key, key_rows, key_of_group->ptr[group]);
        opened->finish(&call, at(opened->accumulator, read, group), key, window);
    }
    if (wrong == NULL) *ret = outcome_of(&call, accumulators->rows);
    end(&call);
    return wrong == NULL || refuse(err, wrong);
}

void exports_millstream_function_aggregate_function_close(void) {
    close();
}

bool exports_millstream_function_window_function_open(module_string_t *function, module_string_t *err) {
    return open(function, MS_WINDOW, err);
}

bool exports_millstream_function_window_function_apply(batch_t *input, times_t *times, module_list_u32_t *offsets,
                                                       batch_t *keys, module_list_u32_t *key_of_window,
                                                       exports_millstream_function_window_function_list_window_t *windows,
                                                       outcome_t *ret, module_string_t *err) {
    ms_call call = begin(0, INT64_MIN);
    release_later(&call, input, (release *)millstream_function_types_batch_free);
    if (times != NULL) release_later(&call, times, (release *)millstream_function_types_times_free);
    release_later(&call, offsets, (release *)module_list_u32_free);
    release_later(&call, keys, (release *)millstream_function_types_batch_free);
    release_later(&call, key_of_window, (release *)module_list_u32_free);
    release_later(&call, windows, (release *)exports_millstream_function_window_function_list_window_free);
    const char *wrong = NULL;
    const char *read = read_rows(&call, opened->input, input, &wrong);
    const char *key_rows = read_rows(&call, opened->key, keys, &wrong);
    for (uint32_t each = 0; wrong == NULL && each < windows->len; each++) {
        call.row = each;
        uint32_t start = offsets->ptr[each], count = offsets->ptr[each + 1] - start;
        ms_window window = {windows->ptr[each].start, windows->ptr[each].end};
        const char *key = at(opened->key, key_rows, key_of_window->ptr[each]);
        opened->apply(&call, key, window, at(opened->input, read, start), count);
    }
    if (wrong == NULL) *ret = outcome_of(&call, windows->len);
    end(&call);
    return wrong == NULL || refuse(err, wrong);
}

void exports_millstream_function_window_function_close(void) {
    close();
}

bool exports_millstream_function_lifecycle_before_barrier(outcome_t *ret, module_string_t *err) {
    if (opened == NULL) return refuse(err, "no function is open");
    hook(opened->before_barrier, ret);
    return true;
}

bool exports_millstream_function_lifecycle_end_of_input(outcome_t *ret, module_string_t *err) {
    if (opened == NULL) return refuse(err, "no function is open");
    hook(opened->end_of_input, ret);
    return true;
}

// Stored values of another version are never asked to be taken over: no manifest of this SDK says that it does.
bool exports_millstream_function_migration_migrate(module_string_t *state, uint32_t stored_version, cells_t *cells,
                                                   cells_t *ret, module_string_t *err) {
    (void)stored_version, (void)ret;
    module_string_free(state);
    millstream_function_types_cells_free(cells);
    return refuse(err, "functions in C take over no stored values of earlier versions");
}

// The bindings ask for the object with the component's type, which `millstream build` puts into the module itself.
void __component_type_object_force_link_module(void) {
}
