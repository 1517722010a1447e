// Functions that use all of the interface, in C: the same as in every other language.

#include <millstream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    bool boolean, boolean_is_null;
    int32_t int32;
    bool int32_is_null;
    int64_t int64;
    bool int64_is_null;
    float float32;
    bool float32_is_null;
    double float64;
    bool float64_is_null;
    int64_t timestamp;
    bool timestamp_is_null;
    int32_t date;
    bool date_is_null;
    ms_text utf8;
    bool utf8_is_null;
    ms_text binary;
    bool binary_is_null;
} types;

MS_ROW(PLAIN, types, MS_FIELD(types, boolean, MS_BOOLEAN), MS_FIELD(types, int32, MS_INT32),
       MS_FIELD(types, int64, MS_INT64), MS_FIELD(types, float32, MS_FLOAT32), MS_FIELD(types, float64, MS_FLOAT64),
       MS_FIELD(types, timestamp, MS_TIMESTAMP), MS_FIELD(types, date, MS_DATE), MS_FIELD(types, utf8, MS_UTF8),
       MS_FIELD(types, binary, MS_BINARY));
MS_ROW(NULLABLE, types, MS_NULLABLE(types, boolean, MS_BOOLEAN), MS_NULLABLE(types, int32, MS_INT32),
       MS_NULLABLE(types, int64, MS_INT64), MS_NULLABLE(types, float32, MS_FLOAT32),
       MS_NULLABLE(types, float64, MS_FLOAT64), MS_NULLABLE(types, timestamp, MS_TIMESTAMP),
       MS_NULLABLE(types, date, MS_DATE), MS_NULLABLE(types, utf8, MS_UTF8), MS_NULLABLE(types, binary, MS_BINARY));

typedef struct {
    int64_t n;
} number;
MS_ROW(NUMBER, number, MS_FIELD(number, n, MS_INT64));

typedef struct {
    int64_t doubled;
} doubled_row;
MS_ROW(DOUBLED, doubled_row, MS_FIELD(doubled_row, doubled, MS_INT64));

static void same(ms_call *call, const void *row) {
    ms_emit(call, row);
}

static void doubled(ms_call *call, const void *row) {
    ms_emit(call, &(doubled_row){((const number *)row)->n * 2});
}

typedef struct {
    int64_t event_time;
    bool event_time_is_null;
} stamped;
MS_ROW(STAMPED, stamped, MS_NULLABLE(stamped, event_time, MS_TIMESTAMP));

static void event_times(ms_call *call, const void *row) {
    (void)row;
    int64_t time = ms_event_time(call);
    ms_emit(call, &(stamped){time, time == INT64_MIN});
}

typedef struct {
    int64_t part;
} part_row;
MS_ROW(PART, part_row, MS_FIELD(part_row, part, MS_INT64));

static void exploded(ms_call *call, const void *row) {
    for (int64_t part = 0; part < ((const number *)row)->n; part++) ms_emit(call, &(part_row){part});
}

static void kept(ms_call *call, const void *row) {
    if (((const number *)row)->n % 2 == 0) ms_emit(call, NULL);
}

static void refused(ms_call *call, const void *row) {
    int64_t n = ((const number *)row)->n;
    if (n % 2 != 0) ms_reject(call, "%lld is odd", (long long)n);
    else ms_emit(call, &(doubled_row){n * 2});
}

typedef struct {
    int64_t now, random;
} drawn;
MS_ROW(DRAWN, drawn, MS_FIELD(drawn, now, MS_INT64), MS_FIELD(drawn, random, MS_INT64));

static void chance(ms_call *call, const void *row) {
    (void)row;
    ms_emit(call, &(drawn){ms_now(call), (int64_t)ms_random(call)});
}

typedef struct {
    ms_text place;
} place_row;
MS_ROW(PLACE, place_row, MS_FIELD(place_row, place, MS_UTF8));

static void place(ms_call *call, const void *row) {
    (void)row;
    ms_task_info task = ms_task(call);
    ms_text text = ms_format(call, "%s %s[%u] of %u, attempt %u", task.job.ptr, task.operator_id.ptr,
                             (unsigned)task.subtask, (unsigned)task.parallelism, (unsigned)task.attempt);
    ms_emit(call, &(place_row){text});
}

static const ms_parameter SETTINGS[] = {
    {"required", MS_INT64, NULL, "Has to be given."},
    {"flag", MS_BOOLEAN, "true", NULL},
    {"int32", MS_INT32, "-3", NULL},
    {"float64", MS_FLOAT64, "1.5", NULL},
    {"text", MS_UTF8, "text", NULL},
    {0},
};

typedef struct {
    ms_text settings;
} configured_row;
MS_ROW(CONFIGURED, configured_row, MS_FIELD(configured_row, settings, MS_UTF8));

static void configured(ms_call *call, const void *row) {
    (void)row;
    ms_text settings = ms_format(
        call, "%lld %s %d %g %s", (long long)ms_parameter_integer(call, "required"),
        ms_parameter_boolean(call, "flag") ? "true" : "false", (int)ms_parameter_integer(call, "int32"),
        ms_parameter_number(call, "float64"), ms_parameter_text(call, "text").ptr);
    ms_emit(call, &(configured_row){settings});
}

static void measured(ms_call *call, const void *row) {
    int64_t n = ((const number *)row)->n;
    ms_log(call, MS_INFO, "number %lld", (long long)n);
    ms_count(call, "numbers", 1);
    ms_gauge(call, "last_number", (double)n);
    ms_emit(call, NULL);
}

typedef struct {
    ms_text command, name;
    int64_t n;
} command_row;
MS_ROW(COMMAND, command_row, MS_FIELD(command_row, command, MS_UTF8), MS_FIELD(command_row, name, MS_UTF8),
       MS_FIELD(command_row, n, MS_INT64));

typedef struct {
    ms_text answer;
} answer_row;
MS_ROW(ANSWER, answer_row, MS_FIELD(answer_row, answer, MS_UTF8));

typedef struct {
    ms_text key;
    bool processing;
    int64_t time;
} fired_row;
MS_ROW(FIRED, fired_row, MS_FIELD(fired_row, key, MS_UTF8), MS_FIELD(fired_row, processing, MS_BOOLEAN),
       MS_FIELD(fired_row, time, MS_INT64));

typedef struct {
    int64_t number;
    ms_text text;
    bool text_is_null;
} pair;
MS_ROW(PAIR, pair, MS_FIELD(pair, number, MS_INT64), MS_NULLABLE(pair, text, MS_UTF8));

enum { VALUE, LIST, MAP };
static const ms_state REGISTERS[] = {
    {"value", MS_VALUE, &PAIR, 3},
    {"list", MS_LIST, &MS_INT64_VALUE, 0},
    {"map", MS_MAP_STATE, &MS_INT64_VALUE, 0},
    {0},
};
static const ms_side FIRED_SIDE[] = {{"fired", &FIRED}, {0}};

static ms_text shown_list(ms_call *call) {
    size_t count;
    const int64_t *items = ms_list_get(call, LIST, &count);
    ms_text text = MS_TEXT("");
    for (size_t at = 0; at < count; at++) {
        text = ms_format(call, "%.*s%s%lld", (int)text.len, text.ptr, at > 0 ? ", " : "", (long long)items[at]);
    }
    return text;
}

static ms_text shown_map(ms_call *call) {
    ms_text text = MS_TEXT(""), name;
    int64_t n;
    for (size_t at = 0; ms_map_entry(call, MAP, at, &name, &n); at++) {
        text = ms_format(call, "%.*s%s%.*s=%lld", (int)text.len, text.ptr, at > 0 ? " " : "", (int)name.len, name.ptr,
                         (long long)n);
    }
    return text;
}

static ms_text look(ms_call *call, ms_text key, ms_text name) {
    pair value;
    int64_t n;
    ms_text shown = MS_TEXT("None"), entry = MS_TEXT("None");
    if (ms_value_get(call, VALUE, &value)) {
        shown = ms_format(call, "Some((%lld, \"%.*s\"))", (long long)value.number, (int)value.text.len, value.text.ptr);
    }
    if (ms_map_get(call, MAP, name, &n)) entry = ms_format(call, "Some(%lld)", (long long)n);
    ms_text list = shown_list(call), map = shown_map(call);
    return ms_format(call, "%.*s@%lld: value %s, list [%.*s], map [%.*s], entry %s", (int)key.len, key.ptr,
                     (long long)ms_watermark(call), shown.ptr, (int)list.len, list.ptr, (int)map.len, map.ptr,
                     entry.ptr);
}

static bool is(ms_text text, const char *word) {
    return ms_compare(text, (ms_text){word, strlen(word)}) == 0;
}

static void registers(ms_call *call, const void *key, const void *row) {
    const command_row *it = row;
    if (is(it->command, "set")) ms_value_set(call, VALUE, &(pair){it->n, it->name, false});
    else if (is(it->command, "clear")) ms_value_clear(call, VALUE);
    else if (is(it->command, "add")) ms_list_add(call, LIST, &it->n);
    else if (is(it->command, "replace")) ms_list_clear(call, LIST), ms_list_add(call, LIST, &it->n);
    else if (is(it->command, "empty")) ms_list_clear(call, LIST);
    else if (is(it->command, "put")) ms_map_put(call, MAP, it->name, &it->n);
    else if (is(it->command, "remove")) ms_map_remove(call, MAP, it->name);
    else if (is(it->command, "wipe")) ms_map_clear(call, MAP);
    else if (is(it->command, "timer")) ms_set_timer(call, MS_EVENT, it->n);
    else if (is(it->command, "untimer")) ms_clear_timer(call, MS_EVENT, it->n);
    else if (is(it->command, "processing-timer")) ms_set_timer(call, MS_PROCESSING, it->n);
    else if (is(it->command, "look")) ms_emit(call, &(answer_row){look(call, *(const ms_text *)key, it->name)});
    else ms_reject(call, "unknown command `%.*s`", (int)it->command.len, it->command.ptr);
}

static void register_fired(ms_call *call, const void *key, ms_timer timer) {
    ms_emit_side(call, 0, &(fired_row){*(const ms_text *)key, timer.clock == MS_PROCESSING, timer.time});
}

typedef struct {
    bool reminder;
} reminded;
MS_ROW(REMINDED, reminded, MS_FIELD(reminded, reminder, MS_BOOLEAN));

static void remember(ms_call *call, const void *key, const void *row) {
    (void)key;
    ms_set_timer(call, MS_EVENT, ((const number *)row)->n);
    ms_emit(call, &(reminded){false});
}

static void remind(ms_call *call, const void *key, ms_timer timer) {
    (void)key, (void)timer;
    ms_emit(call, &(reminded){true});
}

typedef struct {
    ms_text at;
    int64_t total;
} total_row;
MS_ROW(TOTAL, total_row, MS_FIELD(total_row, at, MS_UTF8), MS_FIELD(total_row, total, MS_INT64));

// A state of one number in the subtask.
static int64_t only(ms_call *call, size_t state) {
    size_t count;
    const int64_t *items = ms_items_get(call, state, &count);
    return count > 0 ? items[0] : 0;
}

static size_t length(ms_call *call, size_t state) {
    size_t count;
    ms_items_get(call, state, &count);
    return count;
}

static void start_at_zero(ms_call *call) {
    if (length(call, 0) == 0) ms_items_set(call, 0, &(int64_t){0}, 1);
}

// Adds an item to a state of the subtask.
static void append(ms_call *call, size_t state, int64_t item) {
    size_t count;
    const int64_t *items = ms_items_get(call, state, &count);
    int64_t *more = ms_allocate(call, (count + 1) * sizeof(int64_t));
    memcpy(more, items, count * sizeof(int64_t));
    more[count] = item;
    ms_items_set(call, state, more, count + 1);
}

static const ms_state TOTALS[] = {{"totals", MS_OPERATOR, &MS_INT64_VALUE, 0}, {0}};

static void add_up(ms_call *call, const void *key, const void *row) {
    (void)key;
    ms_items_set(call, 0, &(int64_t){only(call, 0) + ((const number *)row)->n}, 1);
}

static int64_t sum(ms_call *call) {
    size_t count;
    const int64_t *items = ms_items_get(call, 0, &count);
    int64_t sum = 0;
    for (size_t at = 0; at < count; at++) sum += items[at];
    return sum;
}

static void totals_barrier(ms_call *call) {
    ms_emit_at(call, 0, &(total_row){MS_TEXT("barrier"), sum(call)});
}

static void totals_end(ms_call *call) {
    ms_emit_at(call, 0, &(total_row){MS_TEXT("end"), sum(call)});
}

typedef struct {
    int64_t n, position;
} position_row;
MS_ROW(POSITION, position_row, MS_FIELD(position_row, n, MS_INT64), MS_FIELD(position_row, position, MS_INT64));

static const ms_state POSITIONS[] = {
    {"last", MS_OPERATOR, &MS_INT64_VALUE, 0},
    {"steps", MS_UNION, &MS_INT64_VALUE, 0},
    {0},
};
static const ms_parameter STEP[] = {{"step", MS_INT64, "1", NULL}, {0}};

static void positions_open(ms_call *call) {
    start_at_zero(call);
    append(call, 1, ms_parameter_integer(call, "step"));
}

static void positions(ms_call *call, const void *row) {
    int64_t n = ((const number *)row)->n, last = only(call, 0) + ms_parameter_integer(call, "step");
    ms_items_set(call, 0, &last, 1);
    ms_count(call, "numbered", 1);
    if (n >= 0) ms_emit(call, &(position_row){n, last});
}

static void positions_barrier(ms_call *call) {
    ms_emit_at(call, 1, &(position_row){-1, only(call, 0)});
}

static void positions_end(ms_call *call) {
    ms_emit_at(call, 2, &(position_row){-2, only(call, 0)});
    ms_emit_at(call, 3, &(position_row){-3, (int64_t)length(call, 1)});
}

static void positions_close(ms_call *call) {
    ms_log(call, MS_INFO, "closed at %lld", (long long)only(call, 0));
}

static const ms_state OPENED[] = {{"opened", MS_OPERATOR, &MS_INT64_VALUE, 0}, {0}};
static const ms_parameter FACTOR[] = {{"factor", MS_INT64, "10", NULL}, {0}};

static void summed_open(ms_call *call) {
    append(call, 0, ms_parameter_integer(call, "factor"));
}

static void summed_add(ms_call *call, void *accumulator, const void *row) {
    (void)call;
    *(int64_t *)accumulator += ((const number *)row)->n;
}

static void summed_merge(ms_call *call, void *into, const void *other) {
    (void)call;
    *(int64_t *)into += *(const int64_t *)other;
}

static void summed_finish(ms_call *call, const void *accumulator, const void *key, ms_window window) {
    (void)key, (void)window;
    int64_t factor = ms_parameter_integer(call, "factor");
    ms_emit(call, &(total_row){MS_TEXT("window"), *(const int64_t *)accumulator * factor});
}

static void summed_barrier(ms_call *call) {
    ms_emit_at(call, 1, &(total_row){MS_TEXT("barrier"), (int64_t)length(call, 0)});
}

static void summed_end(ms_call *call) {
    ms_emit_at(call, 2, &(total_row){MS_TEXT("end"), (int64_t)length(call, 0)});
}

static const ms_state LONGEST[] = {{"longest", MS_OPERATOR, &MS_INT64_VALUE, 0}, {0}};
static const ms_parameter LEAST[] = {{"least", MS_INT64, "0", NULL}, {0}};

static void longest(ms_call *call, const void *key, ms_window window, const void *rows, size_t count) {
    (void)key, (void)window, (void)rows;
    int64_t length = (int64_t)count;
    if (length > only(call, 0)) ms_items_set(call, 0, &length, 1);
    if (length >= ms_parameter_integer(call, "least")) ms_emit(call, &(total_row){MS_TEXT("window"), length});
}

static void longest_barrier(ms_call *call) {
    ms_emit_at(call, 1, &(total_row){MS_TEXT("barrier"), only(call, 0)});
}

static void longest_end(ms_call *call) {
    ms_emit_at(call, 2, &(total_row){MS_TEXT("end"), only(call, 0)});
}

typedef struct {
    ms_text text;
} text_row;
MS_ROW(TEXT, text_row, MS_FIELD(text_row, text, MS_UTF8));

typedef struct {
    int64_t rows;
    ms_text smallest;
    bool smallest_is_null;
    ms_text all;
} gathered;
MS_ROW(GATHERED, gathered, MS_FIELD(gathered, rows, MS_INT64), MS_NULLABLE(gathered, smallest, MS_UTF8),
       MS_FIELD(gathered, all, MS_UTF8));

typedef struct {
    ms_text group;
    int64_t start, end, rows;
    ms_text smallest;
    bool smallest_is_null;
    int64_t bytes;
} shown_row;
MS_ROW(SHOWN, shown_row, MS_FIELD(shown_row, group, MS_UTF8), MS_FIELD(shown_row, start, MS_INT64),
       MS_FIELD(shown_row, end, MS_INT64), MS_FIELD(shown_row, rows, MS_INT64), MS_NULLABLE(shown_row, smallest, MS_UTF8),
       MS_FIELD(shown_row, bytes, MS_INT64));

static void nothing_gathered(ms_call *call, void *accumulator) {
    (void)call;
    ((gathered *)accumulator)->smallest_is_null = true;
}

static void take_smaller(gathered *into, ms_text text) {
    if (!into->smallest_is_null && ms_compare(into->smallest, text) <= 0) return;
    into->smallest = text;
    into->smallest_is_null = false;
}

static ms_text joined_texts(ms_call *call, ms_text one, ms_text other) {
    char *both = ms_allocate(call, one.len + other.len + 1);
    if (one.len > 0) memcpy(both, one.ptr, one.len);
    if (other.len > 0) memcpy(both + one.len, other.ptr, other.len);
    return (ms_text){both, one.len + other.len};
}

static void gather(ms_call *call, void *accumulator, const void *row) {
    gathered *into = accumulator;
    ms_text text = ((const text_row *)row)->text;
    into->rows++;
    into->all = joined_texts(call, into->all, text);
    take_smaller(into, text);
}

static void gather_both(ms_call *call, void *accumulator, const void *other) {
    gathered *into = accumulator;
    const gathered *from = other;
    into->rows += from->rows;
    into->all = joined_texts(call, into->all, from->all);
    if (!from->smallest_is_null) take_smaller(into, from->smallest);
}

static void show_group(ms_call *call, const void *accumulator, const void *key, ms_window window) {
    const gathered *from = accumulator;
    ms_emit(call, &(shown_row){*(const ms_text *)key, window.start, window.end, from->rows, from->smallest,
                               from->smallest_is_null, (int64_t)from->all.len});
}

typedef struct {
    ms_text contents;
} contents_row;
MS_ROW(CONTENTS, contents_row, MS_FIELD(contents_row, contents, MS_UTF8));

static int by_text(const void *one, const void *other) {
    return ms_compare(((const text_row *)one)->text, ((const text_row *)other)->text);
}

static void contents(ms_call *call, const void *key, ms_window window, const void *rows, size_t count) {
    const ms_text *name = key;
    text_row *sorted = ms_allocate(call, count * sizeof(text_row) + 1);
    memcpy(sorted, rows, count * sizeof(text_row));
    qsort(sorted, count, sizeof(text_row), by_text);
    ms_text text = ms_format(call, "%.*s [%lld, %lld):%s", (int)name->len, name->ptr, (long long)window.start,
                             (long long)window.end, count == 0 ? " " : "");
    size_t size = text.len;
    for (size_t at = 0; at < count; at++) size += sorted[at].text.len + 1;
    char *all = ms_allocate(call, size), *end = all + text.len;
    memcpy(all, text.ptr, text.len);
    for (size_t at = 0; at < count; at++) {
        *end++ = ' ';
        if (sorted[at].text.len > 0) memcpy(end, sorted[at].text.ptr, sorted[at].text.len);
        end += sorted[at].text.len;
    }
    ms_emit(call, &(contents_row){{all, size}});
}

static void whole(ms_call *call, const void *key, ms_window window, const void *rows, size_t count) {
    (void)key, (void)window;
    const text_row *texts = rows;
    for (size_t at = 0; count > 1 && at < count; at++) ms_emit(call, &(contents_row){texts[at].text});
}

__attribute__((noinline)) static int64_t root(ms_call *call, int64_t n) {
    if (n < 0) ms_fail(call, "no root of %lld", (long long)n);
    int64_t root = 0;
    while ((root + 1) * (root + 1) <= n) root++;
    return root;
}

static void failing(ms_call *call, const void *row) {
    ms_emit(call, &(doubled_row){root(call, ((const number *)row)->n)});
}

static const ms_function FUNCTIONS[] = {
    {.name = "plain_types", .doc = "Every type as it came.", .kind = MS_MAP, .input = &PLAIN, .output = &PLAIN,
     .carry = MS_REPLACE, .map = same},
    {.name = "nullable_types", .doc = "Every type as it came, null or not.", .kind = MS_MAP, .input = &NULLABLE,
     .output = &NULLABLE, .carry = MS_REPLACE, .map = same},
    {.name = "doubled", .doc = "Appends a column.", .kind = MS_MAP, .input = &NUMBER, .output = &DOUBLED, .map = doubled},
    {.name = "event_times", .doc = "Reads event times and no column.", .kind = MS_MAP, .output = &STAMPED, .times = true,
     .map = event_times},
    {.name = "exploded", .doc = "As many rows as the number says.", .kind = MS_MAP, .input = &NUMBER, .output = &PART,
     .map = exploded},
    {.name = "kept", .doc = "Keeps even numbers.", .kind = MS_MAP, .input = &NUMBER, .map = kept},
    {.name = "refused", .doc = "Refuses odd numbers.", .kind = MS_MAP, .input = &NUMBER, .output = &DOUBLED,
     .map = refused},
    {.name = "chance", .doc = "Emits the time and a random number.", .kind = MS_MAP, .output = &DRAWN, .map = chance},
    {.name = "place", .doc = "Emits the job, the operator and the subtask.", .kind = MS_MAP, .output = &PLACE,
     .map = place},
    {.name = "configured", .doc = "Emits its parameters.", .kind = MS_MAP, .output = &CONFIGURED, .parameters = SETTINGS,
     .map = configured},
    {.name = "measured", .doc = "Logs each number, counts it and sets a gauge to it.", .kind = MS_MAP, .input = &NUMBER,
     .map = measured},
    {.name = "registers", .doc = "Does what its rows say to its states and timers, and answers.", .kind = MS_PROCESS,
     .key = &MS_UTF8_KEY, .input = &COMMAND, .output = &ANSWER, .sides = FIRED_SIDE, .states = REGISTERS,
     .processing_timers = true, .process = registers, .on_timer = register_fired},
    {.name = "reminder", .doc = "Every row, and a reminder of its key when the time comes.", .kind = MS_PROCESS,
     .input = &NUMBER, .output = &REMINDED, .carry = MS_EXTEND, .process = remember, .on_timer = remind},
    {.name = "totals", .doc = "Emits the subtask's total before each barrier and at the end of input.",
     .kind = MS_PROCESS, .input = &NUMBER, .output = &TOTAL, .states = TOTALS, .open = start_at_zero, .process = add_up,
     .before_barrier = totals_barrier, .end_of_input = totals_end},
    {.name = "positions", .doc = "Gives each row of a subtask the next number.", .kind = MS_MAP, .input = &NUMBER,
     .output = &POSITION, .carry = MS_REPLACE, .states = POSITIONS, .parameters = STEP, .open = positions_open,
     .map = positions, .before_barrier = positions_barrier, .end_of_input = positions_end, .close = positions_close},
    {.name = "summed", .doc = "The sum of a group, times the parameter.", .kind = MS_AGGREGATE, .input = &NUMBER,
     .accumulator = &MS_INT64_VALUE, .output = &TOTAL, .carry = MS_REPLACE, .states = OPENED, .parameters = FACTOR,
     .open = summed_open, .add = summed_add, .merge = summed_merge, .finish = summed_finish,
     .before_barrier = summed_barrier, .end_of_input = summed_end},
    {.name = "longest", .doc = "The length of a window that has the least number of rows.", .kind = MS_WINDOW,
     .input = &NUMBER, .output = &TOTAL, .carry = MS_REPLACE, .states = LONGEST, .parameters = LEAST,
     .open = start_at_zero, .apply = longest, .before_barrier = longest_barrier, .end_of_input = longest_end},
    {.name = "joined", .doc = "Number of rows, smallest text and number of bytes of a group.", .kind = MS_AGGREGATE,
     .key = &MS_UTF8_KEY, .input = &TEXT, .accumulator = &GATHERED, .output = &SHOWN, .create = nothing_gathered,
     .add = gather, .merge = gather_both, .finish = show_group},
    {.name = "contents", .doc = "Key, window and rows, as text.", .kind = MS_WINDOW, .key = &MS_UTF8_KEY, .input = &TEXT,
     .output = &CONTENTS, .apply = contents},
    {.name = "whole", .doc = "One row for each row of a window that has more than one.", .kind = MS_WINDOW,
     .input = &TEXT, .output = &CONTENTS, .carry = MS_REPLACE, .apply = whole},
    {.name = "failing", .doc = "Fails at a negative number.", .kind = MS_MAP, .input = &NUMBER, .output = &DOUBLED,
     .map = failing},
};

MS_MODULE("conformance", "0.1.0", FUNCTIONS);
