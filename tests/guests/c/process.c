// A process function against the bare interface: `count` gives each row its running number within its key.
//
// The counts are read for all keys of a call at once and written back at once, so that a call of a thousand rows
// costs two calls of the host. Ownership is as in map.c; what an imported function returns is ours to free.

#include "process_module.h"

#include <stdlib.h>
#include <string.h>

static const char MANIFEST[] =
    "{\"manifest\": 1,"
    " \"module\": {\"name\": \"c_process\", \"version\": \"0.1.0\", \"doc\": \"A process function in C\"},"
    " \"functions\": [{"
    "  \"name\": \"count\", \"kind\": \"process\", \"doc\": \"The running number of each row within its key\","
    "  \"inputs\": [{\"name\": \"input\", \"distribution\": \"keyed\", \"times\": false, \"columns\": []}],"
    "  \"key\": [],"
    "  \"outputs\": [{\"name\": \"output\", \"carry\": \"extend\","
    "   \"columns\": [{\"name\": \"count\", \"type\": \"int64\", \"nullable\": false}]}],"
    "  \"states\": [{\"name\": \"count\", \"kind\": \"value\", \"version\": 1,"
    "   \"columns\": [{\"name\": \"value\", \"type\": \"int64\", \"nullable\": false}]}]"
    " }]}";

typedef exports_millstream_function_process_function_keyed_batch_t keyed_batch_t;
typedef exports_millstream_function_process_function_fired_t fired_t;
typedef exports_millstream_function_process_function_outcome_t outcome_t;
typedef millstream_function_state_own_value_state_t value_state_t;
typedef millstream_function_types_cells_t cells_t;
typedef millstream_function_types_column_t column_t;
typedef millstream_function_types_output_t output_t;
typedef process_module_list_u32_t positions_t;

static value_state_t counts_state;

static void *allocate(size_t count, size_t size) {
    // The bindings free no empty list, so that one must not be allocated either.
    if (count == 0) return NULL;
    void *memory = calloc(count, size);
    if (memory == NULL) abort();
    return memory;
}

static bool is_named(const process_module_string_t *name, const char *expected) {
    return name->len == strlen(expected) && memcmp(name->ptr, expected, name->len) == 0;
}

static positions_t every_key(uint32_t keys) {
    positions_t positions = {.ptr = allocate(keys, sizeof(uint32_t)), .len = keys};
    for (uint32_t key = 0; key < keys; key++) positions.ptr[key] = key;
    return positions;
}

static bool is_one_int64_column(const cells_t *cells, uint32_t keys) {
    return cells->present.len >= (keys + 7) / 8
        && cells->values.columns.len == 1
        && cells->values.columns.ptr[0].values.tag == MILLSTREAM_FUNCTION_TYPES_VALUES_INT64
        && cells->values.columns.ptr[0].values.val.int64.len == keys;
}

// Gives keys that have no count yet one of zero.
static void start_new_keys(cells_t *cells, uint32_t keys) {
    int64_t *counts = cells->values.columns.ptr[0].values.val.int64.ptr;
    for (uint32_t key = 0; key < keys; key++) {
        uint8_t bit = (uint8_t)(1u << (key % 8));
        if (!(cells->present.ptr[key / 8] & bit)) counts[key] = 0;
        cells->present.ptr[key / 8] |= bit;
    }
}

// Counts each row in its key, and notes where the key's count then stands. False if a row names no key.
static bool number_rows(const positions_t *key_of_row, int64_t *counts, uint32_t keys, int64_t *numbers) {
    for (size_t row = 0; row < key_of_row->len; row++) {
        uint32_t key = key_of_row->ptr[row];
        if (key >= keys) return false;
        numbers[row] = ++counts[key];
    }
    return true;
}

static outcome_t one_column(int64_t *numbers, uint32_t rows) {
    column_t *column = allocate(1, sizeof *column);
    column->values.tag = MILLSTREAM_FUNCTION_TYPES_VALUES_INT64;
    column->values.val.int64.ptr = numbers;
    column->values.val.int64.len = rows;
    output_t *output = allocate(1, sizeof *output);
    output->rows = rows;
    output->origin.tag = MILLSTREAM_FUNCTION_TYPES_ORIGIN_EACH;
    output->columns.ptr = column;
    output->columns.len = 1;
    return (outcome_t){.outputs = {.ptr = output, .len = 1}, .rejected = {.ptr = NULL, .len = 0}};
}

// The counts as they are, the rows numbered, the counts as they then are. Returns what was wrong, if anything was.
static const char *count_rows(const keyed_batch_t *input, positions_t *positions, int64_t *numbers) {
    uint32_t keys = input->keys.rows;
    cells_t cells;
    millstream_function_state_borrow_value_state_t state = millstream_function_state_borrow_value_state(counts_state);
    millstream_function_state_method_value_state_read(state, positions, &cells);
    const char *wrong = NULL;
    if (!is_one_int64_column(&cells, keys)) {
        wrong = "the state `count` is not one column of 64-bit integers with a value a key";
    } else {
        start_new_keys(&cells, keys);
        int64_t *counts = cells.values.columns.ptr[0].values.val.int64.ptr;
        if (!number_rows(&input->key_of_row, counts, keys, numbers)) {
            wrong = "a row's key is not among the call's keys";
        } else {
            millstream_function_state_method_value_state_write(state, positions, &cells);
        }
    }
    millstream_function_types_cells_free(&cells);
    return wrong;
}

void exports_millstream_function_manifest_describe(process_module_string_t *ret) {
    process_module_string_dup(ret, MANIFEST);
}

bool exports_millstream_function_process_function_open(
    process_module_string_t *function, process_module_string_t *err
) {
    bool known = is_named(function, "count");
    process_module_string_free(function);
    if (!known) {
        process_module_string_dup(err, "this module has one function, `count`");
        return false;
    }
    process_module_string_t name;
    process_module_string_set(&name, "count");
    return millstream_function_state_static_value_state_open(&name, &counts_state, err);
}

bool exports_millstream_function_process_function_process(
    keyed_batch_t *input, outcome_t *ret, process_module_string_t *err
) {
    uint32_t rows = input->rows.rows;
    positions_t positions = every_key(input->keys.rows);
    int64_t *numbers = allocate(rows, sizeof *numbers);
    const char *wrong = input->key_of_row.len == rows
        ? count_rows(input, &positions, numbers)
        : "there are not as many positions of keys as rows";
    process_module_list_u32_free(&positions);
    exports_millstream_function_process_function_keyed_batch_free(input);
    if (wrong != NULL) {
        free(numbers);
        process_module_string_dup(err, wrong);
        return false;
    }
    *ret = one_column(numbers, rows);
    return true;
}

bool exports_millstream_function_process_function_on_timer(
    fired_t *timers, outcome_t *ret, process_module_string_t *err
) {
    (void)err;
    exports_millstream_function_process_function_fired_free(timers);
    *ret = (outcome_t){0};
    return true;
}

void exports_millstream_function_process_function_close(void) {
    millstream_function_state_value_state_drop_own(counts_state);
}
