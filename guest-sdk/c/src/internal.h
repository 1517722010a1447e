// What the parts of the SDK share.

#ifndef MILLSTREAM_INTERNAL_H
#define MILLSTREAM_INTERNAL_H

#include "millstream.h"
#include "module.h"

typedef millstream_function_types_batch_t batch_t;
typedef millstream_function_types_cells_t cells_t;
typedef millstream_function_types_column_t column_t;
typedef millstream_function_types_outcome_t outcome_t;
typedef millstream_function_types_output_t output_t;
typedef millstream_function_types_rejected_t rejected_t;
typedef module_list_u32_t positions_t;

// A block of memory that goes when a call ends.
typedef struct block {
    struct block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
} block;

// Rows of a struct, one behind the other, in the memory of a call.
typedef struct {
    char *bytes;
    size_t count, room;
} rows;

// What a call has emitted on one output: each row, where it comes from, and whether that is a time.
typedef struct {
    const ms_row *row;
    rows rows;
    rows origins; // of int64_t
    rows made;    // of bool
} collector;

typedef struct {
    uint32_t key;
    ms_clock clock;
    int64_t time;
    bool set;
} timer_change;

typedef struct state_cache state_cache;

struct ms_call {
    const ms_function *function;
    block *memory;
    collector *collectors;
    size_t ports;
    rows rejected;      // of rejected_t
    bool is_rejected;   // the row being handled
    uint32_t row, key, keys;
    int64_t watermark, event_time, now;
    bool has_now, has_seed;
    uint64_t seed;
    rows timers;        // of timer_change
    rows releases;      // of what the bindings free when the call ends
    state_cache *states;
};

#define MAX_STATES 16

// Every function of the bindings that frees takes one pointer, which is all that WebAssembly's types tell apart.
typedef void release(void *);
void release_later(ms_call *call, void *what, release *how);

// Memory for what the bindings free; NULL for nothing, as they free no empty list.
void *owned(size_t count, size_t size);
void text_of(module_string_t *to, const char *text);
void *push(ms_call *call, rows *to, const void *row, size_t size);
size_t count_states(const ms_function *function);

// Rows of a batch, in the memory of the call; what is wrong with it is put into the text.
void *read_rows(ms_call *call, const ms_row *row, const batch_t *batch, const char **wrong);
void write_columns(const ms_row *row, const char *bytes, size_t count, millstream_function_types_list_column_t *to);

bool open_states(const ms_function *function, module_string_t *error);
void begin_states(ms_call *call);
void flush_states(ms_call *call);
void close_states(const ms_function *function);

void describe(module_string_t *ret);

// The name of a function pointer that a function of its kind needs and does not have, or NULL.
const char *missing_pointer(const ms_function *function);

// Logs what has been printed and ends with no line.
void flush_prints(void);

#endif
