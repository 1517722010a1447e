// Write Millstream functions in C: functions over structs whose fields are columns, with state and timers that the host
// keeps.
//
//     typedef struct { double celsius; } reading;
//     MS_ROW(READING, reading, MS_FIELD(reading, celsius, MS_FLOAT64));
//     typedef struct { double fahrenheit; } hot_row;
//     MS_ROW(HOT, hot_row, MS_FIELD(hot_row, fahrenheit, MS_FLOAT64));
//
//     static void hot(ms_call *call, const void *row) {
//         double celsius = ((const reading *)row)->celsius;
//         if (celsius > 30) ms_emit(call, &(hot_row){.fahrenheit = celsius * 9 / 5 + 32});
//     }
//
//     static const ms_function FUNCTIONS[] = {
//         {.name = "hot", .kind = MS_MAP, .input = &READING, .output = &HOT, .map = hot},
//     };
//     MS_MODULE("sensors", "0.1.0", FUNCTIONS);
//
// What a function is handed, and what it allocates with `ms_allocate`, lives until its call of the host ends; what it emits
// or stores has to live as long. A function's own memory is no state: the host may drop an instance at any batch boundary.

#ifndef MILLSTREAM_H
#define MILLSTREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The types of columns, and what the fields for them are.
typedef enum {
    MS_BOOLEAN,   // bool
    MS_INT32,     // int32_t
    MS_INT64,     // int64_t
    MS_FLOAT32,   // float
    MS_FLOAT64,   // double
    MS_TIMESTAMP, // int64_t, milliseconds since the epoch
    MS_DATE,      // int32_t, days since the epoch
    MS_UTF8,      // ms_text, which has to be UTF-8
    MS_BINARY,    // ms_text
} ms_type;

// Text or bytes, without a zero at their end.
typedef struct {
    const char *ptr;
    size_t len;
} ms_text;

#define MS_TEXT(literal) ((ms_text){literal, sizeof(literal) - 1})

typedef struct {
    const char *name;
    ms_type type;
    size_t offset;
    bool nullable;
    size_t null_offset;
} ms_field;

// The columns of a struct.
typedef struct {
    const ms_field *fields;
    size_t count;
    size_t size;
} ms_row;

#define MS_FIELD(row, member, type) {#member, type, MS_OFFSET(row, member, type), false, 0}
// The struct has a `bool member_is_null` beside the member.
#define MS_NULLABLE(row, member, type)                                                                                \
    {#member, type, MS_OFFSET(row, member, type), true, MS_OFFSET(row, member##_is_null, MS_BOOLEAN)}

// What the fields for the types of columns are, and the offset of one that is of that type: others do not compile.
#define MS_C_TYPE_MS_BOOLEAN bool
#define MS_C_TYPE_MS_INT32 int32_t
#define MS_C_TYPE_MS_INT64 int64_t
#define MS_C_TYPE_MS_FLOAT32 float
#define MS_C_TYPE_MS_FLOAT64 double
#define MS_C_TYPE_MS_TIMESTAMP int64_t
#define MS_C_TYPE_MS_DATE int32_t
#define MS_C_TYPE_MS_UTF8 ms_text
#define MS_C_TYPE_MS_BINARY ms_text
#define MS_WORDS(...) #__VA_ARGS__
#define MS_CHECKED(row, member, c_type, words)                                                                        \
    (sizeof(struct {                                                                                                  \
         _Static_assert(_Generic(((row *)0)->member, c_type: 1, default: 0), "field `" #member "` is no " words);       \
         char some;                                                                                                   \
     }) *                                                                                                             \
     0)
#define MS_OFFSET(row, member, type)                                                                                  \
    (offsetof(row, member) + MS_CHECKED(row, member, MS_C_TYPE_##type, MS_TYPE_WORDS(MS_C_TYPE_##type) ", as " #type " is"))
#define MS_TYPE_WORDS(type) MS_WORDS(type)

#define MS_ROW(name, row, ...)                                                                                        \
    static const ms_field name##_FIELDS[] = {__VA_ARGS__};                                                            \
    static const ms_row name = {name##_FIELDS, sizeof(name##_FIELDS) / sizeof(ms_field), sizeof(row)}

// Rows of one column called `value`, for states: an int64_t, a double, an ms_text.
extern const ms_row MS_INT64_VALUE, MS_FLOAT64_VALUE, MS_UTF8_VALUE;
// Keys of one column called `key`: an ms_text, an int64_t.
extern const ms_row MS_UTF8_KEY, MS_INT64_KEY;

// A call of the host that is being handled.
typedef struct ms_call ms_call;

typedef enum { MS_MAP, MS_PROCESS, MS_AGGREGATE, MS_WINDOW } ms_kind;
// What the host adds to the columns that a function makes. By default process functions replace and others extend.
typedef enum { MS_CARRY_DEFAULT, MS_EXTEND, MS_REPLACE } ms_carry;
typedef enum { MS_VALUE, MS_LIST, MS_MAP_STATE, MS_OPERATOR, MS_UNION } ms_state_kind;
typedef enum { MS_EVENT, MS_PROCESSING } ms_clock;

typedef struct {
    int64_t start, end;
} ms_window;

typedef struct {
    ms_clock clock;
    int64_t time;
} ms_timer;

typedef struct {
    const char *name;
    ms_state_kind kind;
    const ms_row *row;
    uint32_t version; // 0 is 1
} ms_state;

typedef struct {
    const char *name;
    ms_type type;
    const char *standard; // the default as text; without it the job file has to set the parameter
    const char *doc;
} ms_parameter;

typedef struct {
    const char *name;
    const ms_row *row;
} ms_side;

typedef struct {
    const char *name, *doc;
    ms_kind kind;
    const ms_row *input, *key, *output, *accumulator;
    uint32_t accumulator_version; // 0 is 1
    ms_carry carry;
    bool times;             // whether event times are sent too
    bool processing_timers; // whether there are timers on the host's clock
    // These end with an empty one.
    const ms_side *sides;
    const ms_state *states;
    const ms_parameter *parameters;

    void (*map)(ms_call *call, const void *row);
    void (*process)(ms_call *call, const void *key, const void *row);
    void (*on_timer)(ms_call *call, const void *key, ms_timer timer);
    void (*create)(ms_call *call, void *accumulator); // of zeros otherwise
    void (*add)(ms_call *call, void *accumulator, const void *row);
    void (*merge)(ms_call *call, void *into, const void *other); // without it only for windows that merge nothing
    void (*finish)(ms_call *call, const void *accumulator, const void *key, ms_window window);
    void (*apply)(ms_call *call, const void *key, ms_window window, const void *rows, size_t count);
    void (*open)(ms_call *call);
    void (*close)(ms_call *call);
    void (*before_barrier)(ms_call *call);
    void (*end_of_input)(ms_call *call);
} ms_function;

typedef struct {
    const char *name, *version;
    const ms_function *functions;
    size_t count;
} ms_module;

extern const ms_module MS_THE_MODULE;
#define MS_MODULE(name, version, functions)                                                                           \
    const ms_module MS_THE_MODULE = {name, version, functions, sizeof(functions) / sizeof(ms_function)}

// Output. A row has the event time of the row, timer or window being handled, or one of its own, which is only for
// outputs that replace. `side` counts from 0.
void ms_emit(ms_call *call, const void *row);
void ms_emit_at(ms_call *call, int64_t time, const void *row);
void ms_emit_side(ms_call *call, size_t side, const void *row);
// Refuses the row; the operator's policy says what becomes of it. What was emitted of it is taken back.
void ms_reject(ms_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Ends the instance: for what must not happen. The text and the call stack are in the job's error.
#define ms_fail(call, ...) ms_fail_at(call, __FILE__, __LINE__, __VA_ARGS__)
_Noreturn void ms_fail_at(ms_call *call, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

// Memory until the call of the host ends, of zeros; never NULL.
void *ms_allocate(ms_call *call, size_t size);
// Text as printf makes it, in such memory.
ms_text ms_format(ms_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
int ms_compare(ms_text one, ms_text other);

// Parameters, which have been checked when the function opened.
int64_t ms_parameter_integer(ms_call *call, const char *name);
double ms_parameter_number(ms_call *call, const char *name);
bool ms_parameter_boolean(ms_call *call, const char *name);
ms_text ms_parameter_text(ms_call *call, const char *name);

// State of the current key; `state` is the position among the function's states. All keys of a call are read at once at
// the first look, and written at once at its end.
bool ms_value_get(ms_call *call, size_t state, void *row); // false and zeros if there is none
void ms_value_set(ms_call *call, size_t state, const void *row);
void ms_value_clear(ms_call *call, size_t state);
const void *ms_list_get(ms_call *call, size_t state, size_t *count);
void ms_list_add(ms_call *call, size_t state, const void *row);
void ms_list_clear(ms_call *call, size_t state);
// Map keys are bytes, in whose order the entries are. The first look reads the whole maps of the call's keys.
bool ms_map_get(ms_call *call, size_t state, ms_text map_key, void *row);
void ms_map_put(ms_call *call, size_t state, ms_text map_key, const void *row);
void ms_map_remove(ms_call *call, size_t state, ms_text map_key);
void ms_map_clear(ms_call *call, size_t state);
// The entry at a position, or false behind the last one.
bool ms_map_entry(ms_call *call, size_t state, size_t at, ms_text *map_key, void *row);
// Items of the subtask, of MS_OPERATOR and MS_UNION.
const void *ms_items_get(ms_call *call, size_t state, size_t *count);
void ms_items_set(ms_call *call, size_t state, const void *rows, size_t count);

void ms_set_timer(ms_call *call, ms_clock clock, int64_t time);
void ms_clear_timer(ms_call *call, ms_clock clock, int64_t time);
// INT64_MIN while there is none.
int64_t ms_watermark(ms_call *call);
// The event time of the row, INT64_MIN if it has none. Only for functions that say `times`.
int64_t ms_event_time(ms_call *call);
// Milliseconds since the epoch; a random number. Both are the same in a replay.
int64_t ms_now(ms_call *call);
uint64_t ms_random(ms_call *call);

typedef enum { MS_TRACE, MS_DEBUG, MS_INFO, MS_WARN, MS_ERROR } ms_level;
void ms_log(ms_call *call, ms_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void ms_count(ms_call *call, const char *metric, uint64_t by);
void ms_gauge(ms_call *call, const char *metric, double value);

typedef struct {
    ms_text job, operator_id;
    uint32_t subtask, parallelism, attempt;
} ms_task_info;
ms_task_info ms_task(ms_call *call);

#endif
