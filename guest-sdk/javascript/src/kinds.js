// Open functions: one class a kind, called with whole batches.

import { timeOf } from "./call.js";
import { encode, isBytes, isPromise, MismatchError, shown } from "./columns.js";
import { NO_TIME, Reject } from "./context.js";
import { batchOf, readCells, readColumns, readRows } from "./rows.js";

const EMPTY = { outputs: [], rejected: [] };

class Opened {
  constructor(declaration, context, states) {
    this.declaration = declaration;
    this.options = declaration.options;
    this.context = context;
    this.states = states;
  }

  hook(name) {
    const call = this.options[name];
    if (call === undefined) return EMPTY;
    this._begin();
    const made = call(this.context);
    if (isPromise(made)) throw new MismatchError(`\`${name}\` returned ${shown(made)}`);
    this._flush();
    return this.context._outcome(0);
  }

  _begin(keys = 0, watermark = NO_TIME) {
    this.context._begin(watermark);
    for (const state of this.states) state._begin(keys);
  }

  _flush() {
    for (const state of this.states) state._flush();
    this.context._flush();
  }

  _at(row, key = 0) {
    this.context._at(row, key);
    for (const state of this.states) state._key = key;
  }

  _time(times, row) {
    if (times) this.context.eventTime = times[row] === NO_TIME ? null : timeOf(times[row]);
  }

  // Emits what a call returned: nothing, a row, or several. True if the row was not refused.
  _take(call, row, rejected) {
    try {
      const made = call();
      if (made === undefined || made === null) return;
      if (typeof made === "object" && Symbol.iterator in made && !isBytes(made)) for (const each of [...made]) this.context.emit(each);
      else this.context.emit(made);
    } catch (error) {
      if (!(error instanceof Reject) || rejected === undefined) throw error;
      rejected.push({ row, reason: error.message, retryable: false });
    }
  }
}

class OpenedMap extends Opened {
  apply(batch, times) {
    this._begin();
    if (this.options.columns) return this._columns(batch);
    const [{ schema }] = this.declaration.inputs;
    const { map } = this.options;
    const rejected = [];
    readRows(schema, batch).forEach((row, at) => {
      this._time(times, at);
      this._at(at);
      this._take(() => map(row, this.context), at, rejected);
    });
    this._flush();
    return this.context._outcome(batch.rows, rejected);
  }

  _columns(batch) {
    const [{ schema }] = this.declaration.inputs;
    const [port] = this.declaration.ports;
    const names = schema.columns.map(({ name }) => name);
    const read = Object.fromEntries(readColumns(schema, batch).map((column, at) => [names[at], column]));
    const returned = this.options.columns({ ...read, rows: batch.rows }, this.context);
    if (typeof returned !== "object" || returned === null || isPromise(returned)) {
      throw new MismatchError(`\`columns\` returned ${shown(returned)}, expected an object with an array a column`);
    }
    const { picked, ...made } = returned;
    const rows = picked?.length ?? batch.rows;
    const columns = port.schema.columns.map((column) => {
      const values = made[column.name];
      if (values?.length !== rows) {
        throw new MismatchError(`column \`${column.name}\`: expected ${rows} values, found ${values?.length ?? "none"}`);
      }
      return encode(Array.from(values), column);
    });
    this._flush();
    const origin = picked ? { tag: "picked", val: Uint32Array.from(picked) } : { tag: "each" };
    return { outputs: rows > 0 ? [{ port: 0, rows, origin, columns }] : [], rejected: [] };
  }
}

class OpenedProcess extends Opened {
  process({ port, rows, times, keys, keyOfRow, watermark }) {
    this._begin(keys.rows, watermark);
    const { schema, process } = this.declaration.inputs[port];
    const distinct = keysOf(this.declaration, keys);
    const rejected = [];
    readRows(schema, rows).forEach((row, at) => {
      const key = keyOfRow[at];
      this._time(times, at);
      this._at(at, key);
      this._take(() => process(distinct[key], row, this.context), at, rejected);
    });
    this._flush();
    return this.context._outcome(rows.rows, rejected);
  }

  onTimer({ clock, keys, times, watermark }) {
    this._begin(keys.rows, watermark);
    const { onTimer } = this.options;
    if (onTimer) {
      keysOf(this.declaration, keys).forEach((key, at) => {
        this._at(at, at);
        this._take(() => onTimer(key, { clock, time: timeOf(times[at]) }, this.context), at);
      });
    }
    this._flush();
    return this.context._outcome(keys.rows);
  }
}

class OpenedAggregate extends Opened {
  accumulate(rows, times, groupOfRow, cells) {
    this._begin();
    const { accumulator, inputs } = this.declaration;
    const { add } = this.options;
    const accumulators = readCells(accumulator, cells).map((each) => each ?? this._create());
    const rejected = [];
    readRows(inputs[0].schema, rows).forEach((row, at) => {
      const group = groupOfRow[at];
      this._time(times, at);
      try {
        accumulators[group] = add(accumulators[group], row, this.context) ?? accumulators[group];
      } catch (error) {
        if (!(error instanceof Reject)) throw error;
        rejected.push({ row: at, reason: error.message, retryable: false });
      }
    });
    this._flush();
    return { accumulators: batchOf(accumulator, accumulators), rejected };
  }

  merge(into, other) {
    const { accumulator, name } = this.declaration;
    const { merge } = this.options;
    if (merge === undefined) throw new MismatchError(`\`${name}\` has no function \`merge\``);
    this._begin();
    const others = readRows(accumulator, other);
    const merged = readRows(accumulator, into).map((each, at) => merge(each, others[at]) ?? each);
    this._flush();
    return batchOf(accumulator, merged);
  }

  finish(accumulators, keys, keyOfGroup, windows) {
    this._begin();
    const { finish } = this.options;
    const distinct = keysOf(this.declaration, keys);
    readRows(this.declaration.accumulator, accumulators).forEach((each, at) => {
      this._at(at);
      this._take(() => finish(each, distinct[keyOfGroup[at]], windowOf(windows[at]), this.context), at);
    });
    this._flush();
    return this.context._outcome(accumulators.rows);
  }

  _create() {
    const { create } = this.options;
    if (create) return create();
    return this.declaration.accumulator.single ? 0 : zeros(this.declaration.accumulator);
  }
}

class OpenedWindow extends Opened {
  apply(rows, _times, offsets, keys, keyOfWindow, windows) {
    this._begin();
    const { apply } = this.options;
    const distinct = keysOf(this.declaration, keys);
    const all = readRows(this.declaration.inputs[0].schema, rows);
    windows.forEach((window, at) => {
      this._at(at);
      const contents = all.slice(offsets[at], offsets[at + 1]);
      this._take(() => apply(distinct[keyOfWindow[at]], windowOf(window), contents, this.context), at);
    });
    this._flush();
    return this.context._outcome(windows.length);
  }
}

function keysOf({ key }, keys) {
  return key.columns.length === 0 ? new Array(keys.rows).fill(undefined) : readRows(key, keys);
}

function windowOf({ start, end }) {
  return { start: timeOf(start), end: timeOf(end) };
}

// A new accumulator: null where it may be, else zero or empty.
function zeros({ columns }) {
  const zero = ({ name, isNullable }) =>
    isNullable ? null : ({ boolean: false, utf8: "", binary: new Uint8Array(0), bigint: 0n }[name] ?? 0);
  return Object.fromEntries(columns.map(({ name, type }) => [name, zero(type)]));
}

export const OPENED = { map: OpenedMap, process: OpenedProcess, aggregate: OpenedAggregate, window: OpenedWindow };
