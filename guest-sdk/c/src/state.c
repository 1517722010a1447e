// State: read for all keys of a call at the first look, written for all at its end.

#include "internal.h"

#include <string.h>

typedef struct {
    ms_text name;
    char *row; // NULL: removed
    bool written;
} entry;

// What is known of one key.
typedef struct {
    bool present, written, cleared;
    char *row;            // of values
    rows stored, added;   // of lists
    entry *entries;       // of maps, in order
    size_t count, room;
} slot;

struct state_cache {
    const ms_state *state;
    slot *slots;
    bool loaded, changed;
    rows items; // of operator states
};

typedef union {
    millstream_function_state_own_value_state_t value;
    millstream_function_state_own_list_state_t list;
    millstream_function_state_own_map_state_t map;
    millstream_function_operator_state_own_items_t items;
} handle;

static handle handles[MAX_STATES];

#define VALUE(at) millstream_function_state_borrow_value_state(handles[at].value)
#define LIST(at) millstream_function_state_borrow_list_state(handles[at].list)
#define MAP(at) millstream_function_state_borrow_map_state(handles[at].map)
#define ITEMS(at) millstream_function_operator_state_borrow_items(handles[at].items)

size_t count_states(const ms_function *function) {
    size_t count = 0;
    while (function->states != NULL && function->states[count].name != NULL) count++;
    return count;
}

bool open_states(const ms_function *function, module_string_t *error) {
    size_t count = count_states(function);
    if (count > MAX_STATES) {
        text_of(error, "a function has at most 16 states");
        return false;
    }
    for (size_t at = 0; at < count; at++) {
        module_string_t name = {(uint8_t *)function->states[at].name, strlen(function->states[at].name)};
        bool opened = false;
        switch (function->states[at].kind) {
        case MS_VALUE:
            opened = millstream_function_state_static_value_state_open(&name, &handles[at].value, error);
            break;
        case MS_LIST:
            opened = millstream_function_state_static_list_state_open(&name, &handles[at].list, error);
            break;
        case MS_MAP_STATE:
            opened = millstream_function_state_static_map_state_open(&name, &handles[at].map, error);
            break;
        case MS_OPERATOR:
        case MS_UNION:
            opened = millstream_function_operator_state_static_items_open(&name, &handles[at].items, error);
            break;
        }
        if (!opened) return false;
    }
    return true;
}

void close_states(const ms_function *function) {
    size_t count = count_states(function);
    for (size_t at = 0; at < count; at++) {
        switch (function->states[at].kind) {
        case MS_VALUE: millstream_function_state_value_state_drop_own(handles[at].value); break;
        case MS_LIST: millstream_function_state_list_state_drop_own(handles[at].list); break;
        case MS_MAP_STATE: millstream_function_state_map_state_drop_own(handles[at].map); break;
        case MS_OPERATOR:
        case MS_UNION: millstream_function_operator_state_items_drop_own(handles[at].items); break;
        }
    }
}

void begin_states(ms_call *call) {
    size_t count = count_states(call->function);
    call->states = ms_allocate(call, (count + 1) * sizeof(state_cache));
    for (size_t at = 0; at < count; at++) {
        call->states[at].state = &call->function->states[at];
        call->states[at].slots = ms_allocate(call, (call->keys + 1) * sizeof(slot));
    }
}

static state_cache *cache_of(ms_call *call, size_t state, ms_state_kind kind) {
    if (state >= count_states(call->function) || call->states[state].state->kind != kind) {
        ms_fail(call, "the function has no such state at position %zu", state);
    }
    return &call->states[state];
}

static slot *current(ms_call *call, state_cache *cache) {
    if (call->key >= call->keys) ms_fail(call, "state `%s` is kept by key, and there is none here", cache->state->name);
    return &cache->slots[call->key];
}

static char *copy(ms_call *call, const state_cache *cache, const void *row) {
    char *to = ms_allocate(call, cache->state->row->size);
    memcpy(to, row, cache->state->row->size);
    return to;
}

static positions_t all_keys(ms_call *call) {
    positions_t keys = {ms_allocate(call, call->keys * sizeof(uint32_t) + 1), call->keys};
    for (uint32_t key = 0; key < call->keys; key++) keys.ptr[key] = key;
    return keys;
}

// What was read lives as long as the call, as texts point into it.
static char *read_state(ms_call *call, const state_cache *cache, const batch_t *batch) {
    const char *wrong = NULL;
    char *read = read_rows(call, cache->state->row, batch, &wrong);
    if (wrong != NULL) ms_fail(call, "state `%s`: %s", cache->state->name, wrong);
    return read;
}

static bool is_set(const millstream_function_types_bitmap_t *bits, size_t at) {
    return at / 8 < bits->len && bits->ptr[at / 8] >> (at % 8) & 1;
}

static void load_values(ms_call *call, size_t at, state_cache *cache) {
    positions_t keys = all_keys(call);
    cells_t *cells = ms_allocate(call, sizeof(cells_t));
    millstream_function_state_method_value_state_read(VALUE(at), &keys, cells);
    release_later(call, cells, (release *)millstream_function_types_cells_free);
    char *read = read_state(call, cache, &cells->values);
    for (uint32_t key = 0; key < call->keys; key++) {
        slot *slot = &cache->slots[key];
        if (slot->written || !is_set(&cells->present, key)) continue;
        slot->present = true;
        slot->row = read + key * cache->state->row->size;
    }
    cache->loaded = true;
}

bool ms_value_get(ms_call *call, size_t state, void *row) {
    state_cache *cache = cache_of(call, state, MS_VALUE);
    slot *slot = current(call, cache);
    if (!cache->loaded && !slot->written) load_values(call, state, cache);
    size_t size = cache->state->row->size;
    if (slot->present) memcpy(row, slot->row, size);
    else memset(row, 0, size);
    return slot->present;
}

void ms_value_set(ms_call *call, size_t state, const void *row) {
    state_cache *cache = cache_of(call, state, MS_VALUE);
    slot *slot = current(call, cache);
    slot->row = copy(call, cache, row);
    slot->present = slot->written = cache->changed = true;
}

void ms_value_clear(ms_call *call, size_t state) {
    state_cache *cache = cache_of(call, state, MS_VALUE);
    slot *slot = current(call, cache);
    slot->present = false;
    slot->written = cache->changed = true;
}

static void load_lists(ms_call *call, size_t at, state_cache *cache) {
    positions_t keys = all_keys(call);
    millstream_function_types_runs_t *runs = ms_allocate(call, sizeof *runs);
    millstream_function_state_method_list_state_read(LIST(at), &keys, runs);
    release_later(call, runs, (release *)millstream_function_types_runs_free);
    char *read = read_state(call, cache, &runs->items);
    for (uint32_t key = 0; key < call->keys; key++) {
        uint32_t start = runs->offsets.ptr[key], end = runs->offsets.ptr[key + 1];
        if (cache->slots[key].cleared) continue;
        cache->slots[key].stored = (rows){read + start * cache->state->row->size, end - start, 0};
    }
    cache->loaded = true;
}

const void *ms_list_get(ms_call *call, size_t state, size_t *count) {
    state_cache *cache = cache_of(call, state, MS_LIST);
    slot *slot = current(call, cache);
    if (!cache->loaded && !slot->cleared) load_lists(call, state, cache);
    size_t size = cache->state->row->size;
    *count = slot->stored.count + slot->added.count;
    char *all = ms_allocate(call, *count * size + 1);
    if (slot->stored.count > 0) memcpy(all, slot->stored.bytes, slot->stored.count * size);
    if (slot->added.count > 0) memcpy(all + slot->stored.count * size, slot->added.bytes, slot->added.count * size);
    return all;
}

void ms_list_add(ms_call *call, size_t state, const void *row) {
    state_cache *cache = cache_of(call, state, MS_LIST);
    push(call, &current(call, cache)->added, row, cache->state->row->size);
    cache->changed = true;
}

void ms_list_clear(ms_call *call, size_t state) {
    state_cache *cache = cache_of(call, state, MS_LIST);
    slot *slot = current(call, cache);
    slot->stored.count = slot->added.count = 0;
    slot->cleared = cache->changed = true;
}

// The position of an entry, or where it would be.
static size_t find(const slot *slot, ms_text name, bool *found) {
    size_t low = 0, high = slot->count;
    *found = false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = ms_compare(slot->entries[middle].name, name);
        if (order == 0) *found = true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

static entry *insert(ms_call *call, slot *slot, ms_text name) {
    bool found;
    size_t at = find(slot, name, &found);
    if (found) return &slot->entries[at];
    if (slot->count == slot->room) {
        slot->room = slot->room * 2 + 8;
        entry *grown = ms_allocate(call, slot->room * sizeof(entry));
        if (slot->count > 0) memcpy(grown, slot->entries, slot->count * sizeof(entry));
        slot->entries = grown;
    }
    memmove(slot->entries + at + 1, slot->entries + at, (slot->count - at) * sizeof(entry));
    slot->count++;
    slot->entries[at] = (entry){name, NULL, false};
    return &slot->entries[at];
}

static void load_maps(ms_call *call, size_t at, state_cache *cache) {
    positions_t keys = all_keys(call);
    millstream_function_types_entries_t *found = ms_allocate(call, sizeof *found);
    millstream_function_state_method_map_state_scan(MAP(at), &keys, NULL, UINT32_MAX, found);
    release_later(call, found, (release *)millstream_function_types_entries_free);
    char *read = read_state(call, cache, &found->values);
    for (uint32_t key = 0; key < call->keys; key++) {
        if (cache->slots[key].cleared) continue;
        for (uint32_t i = found->offsets.ptr[key]; i < found->offsets.ptr[key + 1]; i++) {
            uint32_t start = found->map_keys.offsets.ptr[i], end = found->map_keys.offsets.ptr[i + 1];
            entry *entry = insert(call, &cache->slots[key], (ms_text){(char *)found->map_keys.bytes.ptr + start, end - start});
            if (!entry->written) entry->row = read + i * cache->state->row->size;
        }
    }
    cache->loaded = true;
}

static slot *known(ms_call *call, size_t state, state_cache **cache) {
    *cache = cache_of(call, state, MS_MAP_STATE);
    slot *slot = current(call, *cache);
    if (!(*cache)->loaded && !slot->cleared) load_maps(call, state, *cache);
    return slot;
}

bool ms_map_get(ms_call *call, size_t state, ms_text map_key, void *row) {
    state_cache *cache;
    slot *slot = known(call, state, &cache);
    bool found;
    size_t at = find(slot, map_key, &found);
    found = found && slot->entries[at].row != NULL;
    if (found) memcpy(row, slot->entries[at].row, cache->state->row->size);
    else memset(row, 0, cache->state->row->size);
    return found;
}

void ms_map_put(ms_call *call, size_t state, ms_text map_key, const void *row) {
    state_cache *cache = cache_of(call, state, MS_MAP_STATE);
    entry *entry = insert(call, current(call, cache), map_key);
    entry->row = row == NULL ? NULL : copy(call, cache, row);
    entry->written = cache->changed = true;
}

void ms_map_remove(ms_call *call, size_t state, ms_text map_key) {
    ms_map_put(call, state, map_key, NULL);
}

void ms_map_clear(ms_call *call, size_t state) {
    state_cache *cache = cache_of(call, state, MS_MAP_STATE);
    slot *slot = current(call, cache);
    slot->count = 0;
    slot->cleared = cache->changed = true;
}

bool ms_map_entry(ms_call *call, size_t state, size_t at, ms_text *map_key, void *row) {
    state_cache *cache;
    slot *slot = known(call, state, &cache);
    for (size_t i = 0; i < slot->count; i++) {
        if (slot->entries[i].row == NULL) continue;
        if (at-- > 0) continue;
        *map_key = slot->entries[i].name;
        memcpy(row, slot->entries[i].row, cache->state->row->size);
        return true;
    }
    return false;
}

static state_cache *items_of(ms_call *call, size_t state) {
    ms_state_kind kind = state < count_states(call->function) ? call->states[state].state->kind : MS_VALUE;
    return cache_of(call, state, kind == MS_UNION ? MS_UNION : MS_OPERATOR);
}

const void *ms_items_get(ms_call *call, size_t state, size_t *count) {
    state_cache *cache = items_of(call, state);
    if (!cache->loaded) {
        batch_t *batch = ms_allocate(call, sizeof *batch);
        millstream_function_operator_state_method_items_read(ITEMS(state), batch);
        release_later(call, batch, (release *)millstream_function_types_batch_free);
        cache->items = (rows){read_state(call, cache, batch), batch->rows, 0};
        cache->loaded = true;
    }
    *count = cache->items.count;
    return cache->items.bytes;
}

void ms_items_set(ms_call *call, size_t state, const void *from, size_t count) {
    state_cache *cache = items_of(call, state);
    char *bytes = ms_allocate(call, count * cache->state->row->size + 1);
    if (count > 0) memcpy(bytes, from, count * cache->state->row->size);
    cache->items = (rows){bytes, count, 0};
    cache->loaded = cache->changed = true;
}

// Rows to be written in one call, and what says of which keys they are.
typedef struct {
    rows keys;    // of uint32_t
    rows values;
    rows present; // of bool
    rows names;   // of ms_text
} writes;

static void write_row(ms_call *call, const state_cache *cache, writes *to, uint32_t key, const char *row) {
    bool present = row != NULL;
    push(call, &to->keys, &key, sizeof key);
    push(call, &to->present, &present, sizeof present);
    size_t size = cache->state->row->size;
    push(call, &to->values, present ? row : ms_allocate(call, size), size);
}

static positions_t keys_of(const writes *from) {
    return (positions_t){(uint32_t *)from->keys.bytes, from->keys.count};
}

static batch_t batch_of(const state_cache *cache, const rows *from) {
    batch_t batch = {.rows = (uint32_t)from->count};
    write_columns(cache->state->row, from->bytes, from->count, &batch.columns);
    return batch;
}

static cells_t cells_of(const state_cache *cache, const writes *from) {
    cells_t cells = {.values = batch_of(cache, &from->values)};
    cells.present.len = (from->present.count + 7) / 8;
    cells.present.ptr = owned(cells.present.len, 1);
    for (size_t at = 0; at < from->present.count; at++) {
        if (((bool *)from->present.bytes)[at]) cells.present.ptr[at / 8] |= (uint8_t)(1u << at % 8);
    }
    return cells;
}

static void flush_values(ms_call *call, size_t at, state_cache *cache) {
    writes out = {0};
    for (uint32_t key = 0; key < call->keys; key++) {
        slot *slot = &cache->slots[key];
        if (slot->written) write_row(call, cache, &out, key, slot->present ? slot->row : NULL);
    }
    positions_t keys = keys_of(&out);
    cells_t cells = cells_of(cache, &out);
    millstream_function_state_method_value_state_write(VALUE(at), &keys, &cells);
    millstream_function_types_cells_free(&cells);
}

static positions_t cleared_keys(ms_call *call, const state_cache *cache) {
    positions_t keys = {ms_allocate(call, call->keys * sizeof(uint32_t) + 1), 0};
    for (uint32_t key = 0; key < call->keys; key++) {
        if (cache->slots[key].cleared) keys.ptr[keys.len++] = key;
    }
    return keys;
}

static void flush_lists(ms_call *call, size_t at, state_cache *cache) {
    positions_t cleared = cleared_keys(call, cache);
    if (cleared.len > 0) millstream_function_state_method_list_state_clear(LIST(at), &cleared);
    writes out = {0};
    uint32_t total = 0;
    rows offsets = {0};
    push(call, &offsets, &total, sizeof total);
    for (uint32_t key = 0; key < call->keys; key++) {
        const rows *added = &cache->slots[key].added;
        if (added->count == 0) continue;
        push(call, &out.keys, &key, sizeof key);
        size_t size = cache->state->row->size;
        for (size_t i = 0; i < added->count; i++) push(call, &out.values, added->bytes + i * size, size);
        total += (uint32_t)added->count;
        push(call, &offsets, &total, sizeof total);
    }
    if (out.keys.count == 0) return;
    positions_t keys = keys_of(&out);
    millstream_function_types_runs_t runs = {{(uint32_t *)offsets.bytes, offsets.count}, batch_of(cache, &out.values)};
    millstream_function_state_method_list_state_append(LIST(at), &keys, &runs);
    millstream_function_types_batch_free(&runs.items);
}

static void flush_maps(ms_call *call, size_t at, state_cache *cache) {
    positions_t cleared = cleared_keys(call, cache);
    if (cleared.len > 0) millstream_function_state_method_map_state_clear(MAP(at), &cleared);
    writes out = {0};
    for (uint32_t key = 0; key < call->keys; key++) {
        const slot *slot = &cache->slots[key];
        for (size_t i = 0; i < slot->count; i++) {
            if (!slot->entries[i].written) continue;
            write_row(call, cache, &out, key, slot->entries[i].row);
            push(call, &out.names, &slot->entries[i].name, sizeof(ms_text));
        }
    }
    if (out.keys.count == 0) return;
    positions_t keys = keys_of(&out);
    cells_t cells = cells_of(cache, &out);
    millstream_function_types_list_column_t names;
    write_columns(&MS_UTF8_VALUE, out.names.bytes, out.names.count, &names);
    millstream_function_state_method_map_state_write(MAP(at), &keys, &names.ptr[0].values.val.var, &cells);
    millstream_function_types_list_column_free(&names);
    millstream_function_types_cells_free(&cells);
}

static void flush_items(size_t at, state_cache *cache) {
    batch_t batch = batch_of(cache, &cache->items);
    millstream_function_operator_state_method_items_replace(ITEMS(at), &batch);
    millstream_function_types_batch_free(&batch);
}

void flush_states(ms_call *call) {
    size_t count = count_states(call->function);
    for (size_t at = 0; at < count; at++) {
        state_cache *cache = &call->states[at];
        if (!cache->changed) continue;
        switch (cache->state->kind) {
        case MS_VALUE: flush_values(call, at, cache); break;
        case MS_LIST: flush_lists(call, at, cache); break;
        case MS_MAP_STATE: flush_maps(call, at, cache); break;
        case MS_OPERATOR:
        case MS_UNION: flush_items(at, cache); break;
        }
    }
}
