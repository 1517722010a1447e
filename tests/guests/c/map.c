// A map function against the bare interface: `double` makes of a nullable integer column one of twice its values.
// Integers wrap around, and null stays null.
//
// The bindings' rule of ownership: what an exported function is given is its own, to be freed or handed on; what it
// returns is freed for it after the host has read it. So the input's buffers serve as the output's.

#include "map_module.h"

#include <stdlib.h>
#include <string.h>

static const char MANIFEST[] =
    "{\"manifest\": 1,"
    " \"module\": {\"name\": \"c_map\", \"version\": \"0.1.0\", \"doc\": \"A map function in C\"},"
    " \"functions\": [{"
    "  \"name\": \"double\", \"kind\": \"map\", \"doc\": \"Twice a value; null stays null\","
    "  \"inputs\": [{\"name\": \"input\", \"distribution\": \"any\", \"times\": false,"
    "   \"columns\": [{\"name\": \"value\", \"type\": \"int64\", \"nullable\": true}]}],"
    "  \"outputs\": [{\"name\": \"output\", \"carry\": \"extend\","
    "   \"columns\": [{\"name\": \"doubled\", \"type\": \"int64\", \"nullable\": true}]}]"
    " }]}";

typedef exports_millstream_function_map_function_batch_t batch_t;
typedef exports_millstream_function_map_function_times_t times_t;
typedef exports_millstream_function_map_function_outcome_t outcome_t;
typedef millstream_function_types_output_t output_t;

static bool is_named(const map_module_string_t *name, const char *expected) {
    return name->len == strlen(expected) && memcmp(name->ptr, expected, name->len) == 0;
}

static bool is_one_int64_column(const batch_t *batch) {
    return batch->columns.len == 1
        && batch->columns.ptr[0].values.tag == MILLSTREAM_FUNCTION_TYPES_VALUES_INT64
        && batch->columns.ptr[0].values.val.int64.len == batch->rows;
}

void exports_millstream_function_manifest_describe(map_module_string_t *ret) {
    map_module_string_dup(ret, MANIFEST);
}

bool exports_millstream_function_map_function_open(map_module_string_t *function, map_module_string_t *err) {
    bool known = is_named(function, "double");
    map_module_string_free(function);
    if (!known) map_module_string_dup(err, "this module has one function, `double`");
    return known;
}

bool exports_millstream_function_map_function_apply(
    batch_t *input, times_t *maybe_times, outcome_t *ret, map_module_string_t *err
) {
    if (maybe_times != NULL) exports_millstream_function_map_function_times_free(maybe_times);
    if (!is_one_int64_column(input)) {
        exports_millstream_function_map_function_batch_free(input);
        map_module_string_dup(err, "expected one column of 64-bit integers, `value`");
        return false;
    }
    int64_t *values = input->columns.ptr[0].values.val.int64.ptr;
    for (uint32_t row = 0; row < input->rows; row++) {
        // Unsigned, where wrapping around is defined.
        values[row] = (int64_t)((uint64_t)values[row] * 2);
    }
    output_t *output = malloc(sizeof *output);
    if (output == NULL) abort();
    *output = (output_t){
        .port = 0,
        .rows = input->rows,
        .origin = {.tag = MILLSTREAM_FUNCTION_TYPES_ORIGIN_EACH},
        .columns = input->columns,
    };
    *ret = (outcome_t){.outputs = {.ptr = output, .len = 1}, .rejected = {.ptr = NULL, .len = 0}};
    return true;
}

void exports_millstream_function_map_function_close(void) {}
