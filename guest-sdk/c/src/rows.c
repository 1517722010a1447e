// Structs to and from columns.

#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef millstream_function_types_values_t values_t;

const ms_row MS_INT64_VALUE = {(const ms_field[]){{"value", MS_INT64, 0, false, 0}}, 1, sizeof(int64_t)};
const ms_row MS_FLOAT64_VALUE = {(const ms_field[]){{"value", MS_FLOAT64, 0, false, 0}}, 1, sizeof(double)};
const ms_row MS_UTF8_VALUE = {(const ms_field[]){{"value", MS_UTF8, 0, false, 0}}, 1, sizeof(ms_text)};
const ms_row MS_UTF8_KEY = {(const ms_field[]){{"key", MS_UTF8, 0, false, 0}}, 1, sizeof(ms_text)};
const ms_row MS_INT64_KEY = {(const ms_field[]){{"key", MS_INT64, 0, false, 0}}, 1, sizeof(int64_t)};

void *owned(size_t count, size_t size) {
    if (count == 0) return NULL;
    void *memory = calloc(count, size);
    if (memory == NULL) abort();
    return memory;
}

static bool is_set(const uint8_t *bits, size_t row) {
    return bits[row / 8] >> (row % 8) & 1;
}

// The size of a field of fixed width; 0 for texts and bits.
static size_t width(ms_type type) {
    switch (type) {
    case MS_INT32:
    case MS_DATE:
    case MS_FLOAT32: return 4;
    case MS_INT64:
    case MS_TIMESTAMP:
    case MS_FLOAT64: return 8;
    default: return 0;
    }
}

static uint8_t layout(ms_type type) {
    switch (type) {
    case MS_BOOLEAN: return MILLSTREAM_FUNCTION_TYPES_VALUES_BITS;
    case MS_INT32:
    case MS_DATE: return MILLSTREAM_FUNCTION_TYPES_VALUES_INT32;
    case MS_INT64:
    case MS_TIMESTAMP: return MILLSTREAM_FUNCTION_TYPES_VALUES_INT64;
    case MS_FLOAT32: return MILLSTREAM_FUNCTION_TYPES_VALUES_FLOAT32;
    case MS_FLOAT64: return MILLSTREAM_FUNCTION_TYPES_VALUES_FLOAT64;
    default: return MILLSTREAM_FUNCTION_TYPES_VALUES_VAR;
    }
}

static void read_fixed(const ms_field *field, size_t size, const values_t *values, size_t count, char *bytes) {
    // All lists are a pointer and a length.
    const char *from = (const char *)values->val.int64.ptr;
    size_t wide = width(field->type);
    for (size_t row = 0; row < count; row++) {
        memcpy(bytes + row * size + field->offset, from + row * wide, wide);
    }
}

static void read_texts(const ms_field *field, size_t size, const values_t *values, size_t count, char *bytes) {
    const uint32_t *offsets = values->val.var.offsets.ptr;
    const char *from = (const char *)values->val.var.bytes.ptr;
    for (size_t row = 0; row < count; row++) {
        ms_text *text = (ms_text *)(bytes + row * size + field->offset);
        *text = (ms_text){from + offsets[row], offsets[row + 1] - offsets[row]};
    }
}

static void read_field(const ms_field *field, size_t size, const column_t *column, size_t count, char *bytes) {
    if (field->type == MS_BOOLEAN) {
        for (size_t row = 0; row < count; row++) {
            *(bool *)(bytes + row * size + field->offset) = is_set(column->values.val.bits.ptr, row);
        }
    } else if (width(field->type) > 0) {
        read_fixed(field, size, &column->values, count, bytes);
    } else {
        read_texts(field, size, &column->values, count, bytes);
    }
    if (!field->nullable || !column->validity.is_some) return;
    for (size_t row = 0; row < count; row++) {
        if (!is_set(column->validity.val.ptr, row)) *(bool *)(bytes + row * size + field->null_offset) = true;
    }
}

// The memory is of zeros, so that nothing is null until it is said to be.
void *read_rows(ms_call *call, const ms_row *row, const batch_t *batch, const char **wrong) {
    if (row == NULL) return ms_allocate(call, 1);
    char *bytes = ms_allocate(call, row->size * batch->rows + 1);
    if (batch->columns.len < row->count) {
        *wrong = "a batch has fewer columns than the manifest says";
        return bytes;
    }
    for (size_t at = 0; at < row->count; at++) {
        const column_t *column = &batch->columns.ptr[at];
        if (column->values.tag != layout(row->fields[at].type)) {
            *wrong = "a column has another layout than the manifest says";
            return bytes;
        }
        if (batch->rows > 0) read_field(&row->fields[at], row->size, column, batch->rows, bytes);
    }
    return bytes;
}

static void write_validity(const ms_field *field, size_t size, const char *bytes, size_t count, column_t *column) {
    bool any = false;
    for (size_t row = 0; row < count && !any; row++) any = *(const bool *)(bytes + row * size + field->null_offset);
    if (!any) return;
    column->validity.is_some = true;
    column->validity.val.len = (count + 7) / 8;
    column->validity.val.ptr = owned(column->validity.val.len, 1);
    for (size_t row = 0; row < count; row++) {
        bool is_null = *(const bool *)(bytes + row * size + field->null_offset);
        if (!is_null) column->validity.val.ptr[row / 8] |= (uint8_t)(1u << row % 8);
    }
}

static void write_texts(const ms_field *field, size_t size, const char *bytes, size_t count, column_t *column) {
    millstream_function_types_var_values_t *var = &column->values.val.var;
    var->offsets.len = count + 1;
    var->offsets.ptr = owned(count + 1, sizeof(uint32_t));
    size_t total = 0;
    for (size_t row = 0; row < count; row++) {
        const ms_text *text = (const ms_text *)(bytes + row * size + field->offset);
        bool is_null = field->nullable && *(const bool *)(bytes + row * size + field->null_offset);
        total += is_null ? 0 : text->len;
        var->offsets.ptr[row + 1] = (uint32_t)total;
    }
    var->bytes.len = total;
    var->bytes.ptr = owned(total, 1);
    for (size_t row = 0; row < count; row++) {
        uint32_t start = var->offsets.ptr[row], length = var->offsets.ptr[row + 1] - start;
        const ms_text *text = (const ms_text *)(bytes + row * size + field->offset);
        if (length > 0) memcpy(var->bytes.ptr + start, text->ptr, length);
    }
}

static void write_field(const ms_field *field, size_t size, const char *bytes, size_t count, column_t *column) {
    column->values.tag = layout(field->type);
    if (field->nullable) write_validity(field, size, bytes, count, column);
    if (field->type == MS_BOOLEAN) {
        millstream_function_types_bitmap_t *bits = &column->values.val.bits;
        bits->len = (count + 7) / 8;
        bits->ptr = owned(bits->len, 1);
        for (size_t row = 0; row < count; row++) {
            if (*(const bool *)(bytes + row * size + field->offset)) bits->ptr[row / 8] |= (uint8_t)(1u << row % 8);
        }
    } else if (width(field->type) > 0) {
        size_t wide = width(field->type);
        char *to = owned(count, wide);
        column->values.val.int64.ptr = (int64_t *)to;
        column->values.val.int64.len = count;
        for (size_t row = 0; row < count; row++) memcpy(to + row * wide, bytes + row * size + field->offset, wide);
    } else {
        write_texts(field, size, bytes, count, column);
    }
}

void write_columns(const ms_row *row, const char *bytes, size_t count, millstream_function_types_list_column_t *to) {
    to->len = row == NULL ? 0 : row->count;
    to->ptr = owned(to->len, sizeof(column_t));
    for (size_t at = 0; at < to->len; at++) write_field(&row->fields[at], row->size, bytes, count, &to->ptr[at]);
}
