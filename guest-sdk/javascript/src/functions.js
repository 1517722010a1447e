// Declared functions: what the manifest says of them, and how they open.

import { Context } from "./context.js";
import { MismatchError, shown } from "./columns.js";
import { OPENED } from "./kinds.js";
import { describeParameters, readParameters } from "./parameters.js";
import { isState } from "./state.js";
import { DeclarationError, Schema } from "./types.js";

const OPTIONS = {
  all: ["name", "doc", "input", "output", "sides", "carry", "parameters", "states", "times"],
  hooks: ["open", "close", "beforeBarrier", "endOfInput"],
  map: ["map", "columns"],
  process: ["key", "inputs", "process", "onTimer", "timers"],
  aggregate: ["key", "accumulator", "version", "migrations", "create", "add", "merge", "finish"],
  window: ["key", "apply"],
};

export class Declaration {
  constructor(kind, options) {
    this.kind = kind;
    this.options = options;
    const known = [...OPTIONS.all, ...OPTIONS.hooks, ...OPTIONS[kind]];
    const unknown = Object.keys(options).find((option) => !known.includes(option));
    if (unknown !== undefined) {
      throw new DeclarationError(`a ${kind} function has no \`${unknown}\`: expected ${known.join(", ")}`);
    }
    this.name = options.name;
    this.parameters = options.parameters ?? {};
    this.states = options.states ?? {};
    this.key = new Schema(options.key, "key");
    this.inputs = this._inputs();
    this.ports = this._ports();
    this._check();
  }

  describe() {
    const { options } = this;
    const described = {
      name: this.name,
      kind: this.kind,
      doc: options.doc ?? "",
      parameters: describeParameters(this.parameters),
      inputs: this.inputs.map(({ name, schema, times }) => ({
        name,
        distribution: this.kind === "map" ? "any" : "keyed",
        columns: schema.describe(),
        times,
      })),
      key: this.key.describe(),
      outputs: this.ports.map(({ name, schema, carry }) => ({ name, columns: schema.describe(), carry })),
      states: Object.entries(this.states).map(([name, state]) => state.describe(name)),
      timers: options.timers ?? (options.onTimer ? ["event"] : []),
      lifecycle: [
        ...(options.beforeBarrier ? ["before-barrier"] : []),
        ...(options.endOfInput ? ["end-of-input"] : []),
      ],
    };
    return this.kind === "aggregate" ? { ...described, accumulator: this._accumulator() } : described;
  }

  open() {
    const handles = Object.entries(this.states).map(([name, state]) => [name, state.open(name)]);
    const context = new Context(this, Object.fromEntries(handles), readParameters(this.parameters));
    const opened = new OPENED[this.kind](this, context, handles.map(([, handle]) => handle));
    opened.hook("open");
    return opened;
  }

  // What takes stored values of an earlier version of a state over; accumulators are the state `windows`.
  migration(state, version) {
    const declared =
      state === "windows" && this.kind === "aggregate"
        ? { schema: this.accumulator, migrations: this.options.migrations ?? {} }
        : this.states[state];
    const found = declared?.migrations[version];
    if (found === undefined) {
      throw new MismatchError(`\`${this.name}\` does not take over \`${state}\` of version ${version}`);
    }
    return { from: new Schema(found.from), to: declared.schema, migrate: found.migrate };
  }

  _accumulator() {
    const { version = 1, migrations = {}, merge } = this.options;
    const from = Object.keys(migrations).map(Number);
    return {
      columns: this.accumulator.describe(),
      version,
      ...(from.length > 0 && { "migrates-from": from }),
      ...(merge === undefined && { merges: false }),
    };
  }

  _inputs() {
    const { input, inputs, process, times = false } = this.options;
    if (inputs === undefined) return [{ name: "input", schema: new Schema(input), times, process }];
    return Object.entries(inputs).map(([name, each]) => ({
      name,
      schema: new Schema(each.input),
      times: each.times ?? false,
      process: each.process,
    }));
  }

  _ports() {
    const carry = this.options.carry ?? (this.kind === "process" ? "replace" : "extend");
    if (carry !== "extend" && carry !== "replace") {
      throw new DeclarationError(`carry is "extend" or "replace", found ${JSON.stringify(carry)}`);
    }
    const sides = Object.entries(this.options.sides ?? {});
    return [
      { name: "output", schema: new Schema(this.options.output), carry },
      ...sides.map(([name, row]) => ({ name, schema: new Schema(row), carry: "replace" })),
    ];
  }

  _check() {
    const { options, kind } = this;
    const needed = { process: [], map: [], aggregate: ["add", "finish"], window: ["apply"] }[kind];
    const missing = needed.find((name) => typeof options[name] !== "function");
    if (missing) throw new DeclarationError(`a ${kind} function needs a function \`${missing}\``);
    if (kind === "map" && (typeof options.map === "function") === (typeof options.columns === "function")) {
      throw new DeclarationError("a map function needs a function `map` or `columns`, and not both");
    }
    if (this.inputs.some((input) => kind === "process" && typeof input.process !== "function")) {
      throw new DeclarationError("a process function needs a function `process` for each input");
    }
    for (const [name, state] of Object.entries(this.states)) {
      if (!isState(state)) {
        throw new DeclarationError(`state \`${name}\`: expected valueState, listState, mapState, operatorState or unionState`);
      }
      if (state.isKeyed && kind !== "process") {
        throw new DeclarationError(
          `state \`${name}\` is kept by key, and a ${kind} function has none: expected operatorState or unionState`,
        );
      }
    }
    if (kind === "aggregate") this.accumulator = new Schema(options.accumulator);
  }
}

// A function of a row. What it returns says how many rows come of one: an object, nothing (null or undefined), or an array
// or other iterable of them. `columns` in the place of `map` is called with whole columns.
export function map(options) {
  return new Declaration("map", options);
}

// Keeps the rows for which `keep` returns true.
export function filter({ keep, ...options }) {
  if (typeof keep !== "function") throw new DeclarationError("a filter needs a function `keep`");
  // The output has no columns of its own, so that a row of it is nothing but the input carried along.
  return new Declaration("map", { ...options, map: (row, ctx) => (isKept(keep(row, ctx)) ? {} : null) });
}

// A promise would keep every row, and a `return` that was forgotten none.
function isKept(answer) {
  if (typeof answer !== "boolean") throw new MismatchError(`\`keep\` returned ${shown(answer)}, expected true or false`);
  return answer;
}

// Rows by key, with state and timers.
export function process(options) {
  return new Declaration("process", options);
}

// The rows of a window are taken into an accumulator as they come.
export function aggregate(options) {
  return new Declaration("aggregate", options);
}

// All rows of a window at once.
export function window(options) {
  return new Declaration("window", options);
}

// `delayStats` as `delay_stats`.
export function snakeCase(name) {
  return name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").replace(/([A-Z])([A-Z][a-z])/g, "$1_$2").toLowerCase();
}

// The functions among the exports of a file, by the names that they have in the manifest.
export function functionsOf(exports) {
  const functions = new Map();
  for (const [key, value] of Object.entries(exports)) {
    if (!(value instanceof Declaration)) continue;
    value.name ??= snakeCase(key);
    if (functions.has(value.name)) throw new DeclarationError(`two functions are called \`${value.name}\``);
    functions.set(value.name, value);
  }
  return functions;
}
