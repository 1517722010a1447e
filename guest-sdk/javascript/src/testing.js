// Functions under plain `node --test`, with the host in memory.
//
//     const results = testing.map(hot).parameter("limit", 20).run([{ celsius: 25 }]);
//     assert.deepEqual(results.rows, [{ fahrenheit: 77 }]);

import { timeOf } from "./call.js";
import { NO_TIME } from "./context.js";
import { Declaration } from "./functions.js";
import { setHost } from "./host.js";
import { Memory, runningTotals } from "./memory.js";
import { batchOf, cellsOf, readRows, writeRows } from "./rows.js";

class Results {
  constructor(declaration) {
    this._ports = declaration.ports;
    this.rows = [];
    this.origins = [];
    this.times = [];
    this.rejected = [];
    this._sides = Object.fromEntries(this._ports.map(({ name }) => [name, []]));
  }

  side(name) {
    return this._sides[name];
  }

  _take({ outputs, rejected }) {
    for (const { port, rows, origin, columns } of outputs) {
      const { name, schema } = this._ports[port];
      const made = readRows(schema, { rows, columns });
      this._sides[name].push(...made);
      if (port > 0) continue;
      this.rows.push(...made);
      const places = origin.tag === "each" ? made.map((_, at) => at) : Array.from(origin.val);
      this.origins.push(...places.map((place) => (origin.tag === "made" ? null : place)));
      this.times.push(...places.map((place) => (origin.tag === "made" ? timeOf(place) : null)));
    }
    this.rejected.push(...rejected.map(({ row, reason }) => ({ row, reason })));
    return this;
  }
}

// A function under test. State stays from call to call.
class Test {
  constructor(declaration, kind) {
    if (!(declaration instanceof Declaration) || declaration.kind !== kind) {
      throw new TypeError(`expected a ${kind} function, found ${declaration?.kind ?? typeof declaration}`);
    }
    this.declaration = declaration;
    this.host = new Memory(declaration.states);
  }

  parameter(name, value) {
    this.host.parameters.set(name, String(value));
    return this;
  }

  beforeBarrier() {
    return new Results(this.declaration)._take(this._open().hook("beforeBarrier"));
  }

  endOfInput() {
    return new Results(this.declaration)._take(this._open().hook("endOfInput"));
  }

  _open() {
    setHost(this.host);
    this._opened ??= this.declaration.open();
    return this._opened;
  }
}

// Distinct keys in the order of their first row, and the position of each row's.
function group(rows) {
  const text = (key) => JSON.stringify(key, (_, value) => (typeof value === "bigint" ? `${value}n` : (value ?? null)));
  const distinct = [...new Map(rows.map(([key]) => [text(key ?? null), key])).entries()];
  const texts = distinct.map(([shown]) => shown);
  return { texts, keys: distinct.map(([, key]) => key), of: rows.map(([key]) => texts.indexOf(text(key ?? null))) };
}

// Keys tell rows apart in a test also where a function sees none of them.
function keyBatchOf({ key }, keys) {
  return { rows: keys.length, columns: writeRows(key, keys) };
}

class MapTest extends Test {
  run(rows, times = rows.map(() => null)) {
    const opened = this._open();
    const [{ schema }] = this.declaration.inputs;
    const millis = BigInt64Array.from(times, (time) => (time === null ? NO_TIME : BigInt(time)));
    return new Results(this.declaration)._take(opened.apply(batchOf(schema, rows), millis));
  }
}

class ProcessTest extends Test {
  _watermark = NO_TIME;

  rows(rows, input) {
    const opened = this._open();
    const port = input === undefined ? 0 : this.declaration.inputs.findIndex(({ name }) => name === input);
    const { texts, keys, of } = group(rows);
    this.host.keys = texts;
    this._known = new Map([...(this._known ?? []), ...texts.map((text, at) => [text, keys[at]])]);
    const made = opened.process({
      port,
      rows: batchOf(this.declaration.inputs[port].schema, rows.map(([, row]) => row ?? {})),
      times: undefined,
      keys: keyBatchOf(this.declaration, keys),
      keyOfRow: of,
      watermark: this._watermark,
    });
    return this._fire(new Results(this.declaration)._take(made), "event", this._watermark);
  }

  watermark(time) {
    this._watermark = BigInt(time) > this._watermark ? BigInt(time) : this._watermark;
    return this._fire(new Results(this.declaration), "event", BigInt(time));
  }

  processingTime(time) {
    this.host.time = BigInt(time);
    return this._fire(new Results(this.declaration), "processing", BigInt(time));
  }

  endOfInput() {
    this._watermark = 2n ** 63n - 1n;
    const results = this._fire(new Results(this.declaration), "event", this._watermark);
    return results._take(this._open().hook("endOfInput"));
  }

  // Due timers fire, round by round, at most one a key and call.
  _fire(results, clock, to) {
    const opened = this._open();
    for (;;) {
      const due = [...this.host.timers.values()].filter((timer) => timer.clock === clock && timer.time <= to);
      if (due.length === 0) return results;
      due.sort((a, b) => (a.time < b.time ? -1 : 1));
      const first = new Map([...due].reverse().map(({ key, time }) => [key, time]));
      first.forEach((time, key) => this.host.timers.delete(`${clock} ${time} ${key}`));
      this.host.keys = [...new Set(due.map(({ key }) => key))];
      const keys = keyBatchOf(this.declaration, this.host.keys.map((text) => this._known.get(text)));
      const times = BigInt64Array.from(this.host.keys, (key) => first.get(key));
      results._take(opened.onTimer({ clock, keys, times, watermark: this._watermark }));
    }
  }
}

class WindowedTest extends Test {
  _window = { start: 0n, end: 1n };

  window(start, end) {
    this._window = { start: BigInt(start), end: BigInt(end) };
    return this;
  }
}

class AggregateTest extends WindowedTest {
  run(rows, parts = 1) {
    const opened = this._open();
    const { accumulator, inputs } = this.declaration;
    const { keys, of } = group(rows);
    const results = new Results(this.declaration);
    let merged;
    for (let part = 0; part < parts; part++) {
      const chosen = rows.map((_, at) => at).filter((at) => at % parts === part);
      const batch = batchOf(inputs[0].schema, chosen.map((at) => rows[at][1]));
      const cells = cellsOf(accumulator, keys.map(() => undefined));
      const added = opened.accumulate(batch, undefined, chosen.map((at) => of[at]), cells);
      results.rejected.push(...added.rejected.map(({ row, reason }) => ({ row, reason })));
      merged = merged === undefined ? added.accumulators : opened.merge(merged, added.accumulators);
    }
    const windows = keys.map(() => this._window);
    return results._take(opened.finish(merged, keyBatchOf(this.declaration, keys), keys.map((_, at) => at), windows));
  }
}

class WindowTest extends WindowedTest {
  run(rows) {
    const opened = this._open();
    const { keys, of } = group(rows);
    const contents = keys.map((_, key) => rows.filter((_, at) => of[at] === key).map(([, row]) => row));
    const offsets = Uint32Array.of(0, ...runningTotals(contents.map((rows) => rows.length)));
    const batch = batchOf(this.declaration.inputs[0].schema, contents.flat());
    const windows = keys.map(() => this._window);
    const keyBatch = keyBatchOf(this.declaration, keys);
    const made = opened.apply(batch, undefined, offsets, keyBatch, keys.map((_, at) => at), windows);
    return new Results(this.declaration)._take(made);
  }
}

export const map = (declaration) => new MapTest(declaration, "map");
export const process = (declaration) => new ProcessTest(declaration, "process");
export const aggregate = (declaration) => new AggregateTest(declaration, "aggregate");
export const window = (declaration) => new WindowTest(declaration, "window");
