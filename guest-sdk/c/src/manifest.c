// What a module says about itself, made of its functions' declarations.

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char *bytes;
    size_t count, room;
} text;

static void add(text *to, const char *bytes, size_t count) {
    if (to->count + count > to->room) {
        to->room = (to->count + count) * 2;
        to->bytes = realloc(to->bytes, to->room);
        if (to->bytes == NULL) abort();
    }
    memcpy(to->bytes + to->count, bytes, count);
    to->count += count;
}

static void plain(text *to, const char *words) {
    add(to, words, strlen(words));
}

static void quoted(text *to, const char *words) {
    plain(to, "\"");
    for (const char *at = words == NULL ? "" : words; *at != 0; at++) {
        char escaped[8];
        if (*at == '"' || *at == '\\') snprintf(escaped, sizeof escaped, "\\%c", *at);
        else if ((unsigned char)*at < ' ') snprintf(escaped, sizeof escaped, "\\u%04x", *at);
        else snprintf(escaped, sizeof escaped, "%c", *at);
        plain(to, escaped);
    }
    plain(to, "\"");
}

static void member(text *to, const char *key, const char *value) {
    quoted(to, key);
    plain(to, ":");
    quoted(to, value);
}

static const char *const TYPES[] = {
    "boolean", "int32", "int64", "float32", "float64", "timestamp", "date", "utf8", "binary",
};

static void columns(text *to, const char *key, const ms_row *row) {
    quoted(to, key);
    plain(to, ":[");
    for (size_t at = 0; row != NULL && at < row->count; at++) {
        plain(to, at > 0 ? ",{" : "{");
        member(to, "name", row->fields[at].name);
        plain(to, ",");
        member(to, "type", TYPES[row->fields[at].type]);
        plain(to, row->fields[at].nullable ? ",\"nullable\":true}" : ",\"nullable\":false}");
    }
    plain(to, "]");
}

static void version(text *to, uint32_t number) {
    char words[32];
    snprintf(words, sizeof words, ",\"version\":%u", (unsigned)(number == 0 ? 1 : number));
    plain(to, words);
}

static void output(text *to, const char *name, const ms_row *row, bool extends) {
    plain(to, "{");
    member(to, "name", name);
    plain(to, ",");
    columns(to, "columns", row);
    plain(to, ",");
    member(to, "carry", extends ? "extend" : "replace");
    plain(to, "}");
}

static void outputs(text *to, const ms_function *of) {
    bool extends = of->carry == MS_EXTEND || (of->carry == MS_CARRY_DEFAULT && of->kind != MS_PROCESS);
    plain(to, ",\"outputs\":[");
    output(to, "output", of->output, extends);
    for (const ms_side *side = of->sides; side != NULL && side->name != NULL; side++) {
        plain(to, ",");
        output(to, side->name, side->row, false);
    }
    plain(to, "]");
}

static void parameters(text *to, const ms_function *of) {
    plain(to, ",\"parameters\":[");
    for (const ms_parameter *each = of->parameters; each != NULL && each->name != NULL; each++) {
        plain(to, each == of->parameters ? "{" : ",{");
        member(to, "name", each->name);
        plain(to, ",");
        member(to, "type", TYPES[each->type]);
        if (each->standard != NULL) {
            plain(to, ",");
            member(to, "default", each->standard);
        }
        plain(to, ",");
        member(to, "doc", each->doc);
        plain(to, "}");
    }
    plain(to, "]");
}

static void states(text *to, const ms_function *of) {
    static const char *const KINDS[] = {"value", "list", "map", "operator", "operator"};
    plain(to, ",\"states\":[");
    for (const ms_state *each = of->states; each != NULL && each->name != NULL; each++) {
        plain(to, each == of->states ? "{" : ",{");
        member(to, "name", each->name);
        plain(to, ",");
        member(to, "kind", KINDS[each->kind]);
        version(to, each->version);
        if (each->kind == MS_OPERATOR) plain(to, ",\"redistribution\":\"split\"");
        if (each->kind == MS_UNION) plain(to, ",\"redistribution\":\"union\"");
        plain(to, ",");
        columns(to, "columns", each->row);
        plain(to, "}");
    }
    plain(to, "]");
}

static void function(text *to, const ms_function *of) {
    static const char *const KINDS[] = {"map", "process", "aggregate", "window"};
    plain(to, "{");
    member(to, "name", of->name);
    plain(to, ",");
    member(to, "kind", KINDS[of->kind]);
    plain(to, ",");
    member(to, "doc", of->doc);
    parameters(to, of);
    plain(to, ",\"inputs\":[{\"name\":\"input\",");
    member(to, "distribution", of->kind == MS_MAP ? "any" : "keyed");
    plain(to, of->times ? ",\"times\":true," : ",\"times\":false,");
    columns(to, "columns", of->input);
    plain(to, "}],");
    columns(to, "key", of->key);
    outputs(to, of);
    states(to, of);
    if (of->kind == MS_AGGREGATE) {
        plain(to, ",\"accumulator\":{");
        columns(to, "columns", of->accumulator);
        version(to, of->accumulator_version);
        plain(to, of->merge == NULL ? ",\"merges\":false}" : "}");
    }
    plain(to, ",\"timers\":[");
    if (of->on_timer != NULL) plain(to, of->processing_timers ? "\"event\",\"processing\"" : "\"event\"");
    plain(to, "],\"lifecycle\":[");
    if (of->before_barrier != NULL) plain(to, "\"before-barrier\"");
    if (of->before_barrier != NULL && of->end_of_input != NULL) plain(to, ",");
    if (of->end_of_input != NULL) plain(to, "\"end-of-input\"");
    plain(to, "]}");
}

// A function that could not be called is an error of the build, which asks for the manifest.
static void check(const ms_function *of) {
    const char *missing = missing_pointer(of);
    if (missing == NULL) return;
    char words[256];
    int count = snprintf(words, sizeof words, "function `%s` has no `.%s` in the table of functions", of->name, missing);
    module_string_t message = {(uint8_t *)words, (size_t)count < sizeof words ? (size_t)count : sizeof words - 1};
    millstream_function_context_panicked(&message);
    __builtin_trap();
}

void describe(module_string_t *ret) {
    for (size_t at = 0; at < MS_THE_MODULE.count; at++) check(&MS_THE_MODULE.functions[at]);
    text to = {0};
    plain(&to, "{\"manifest\":1,\"module\":{");
    member(&to, "name", MS_THE_MODULE.name);
    plain(&to, ",");
    member(&to, "version", MS_THE_MODULE.version);
    plain(&to, ",\"sdk\":\"c 0.1.0\"},\"functions\":[");
    for (size_t at = 0; at < MS_THE_MODULE.count; at++) {
        if (at > 0) plain(&to, ",");
        function(&to, &MS_THE_MODULE.functions[at]);
    }
    plain(&to, "]}");
    *ret = (module_string_t){(uint8_t *)to.bytes, to.count};
}
