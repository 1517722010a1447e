// The host in memory, for functions that run natively: what a component would import.

import { packVar, unpackVar, isSet } from "./columns.js";
import { batchOf, cellsOf, readCells, readRows } from "./rows.js";

export class Memory {
  constructor(states) {
    this.states = states;
    this.parameters = new Map();
    this.logs = [];
    this.counts = new Map();
    this.gauges = new Map();
    this.time = 0n;
    this.seed = 0n;
    // Keys of the current call as text, by position.
    this.keys = [];
    this.timers = new Map();
    this.stored = new Map();
    this.items = new Map();
    // Calls that crossed the boundary, so that a test can hold their number.
    this.calls = 0;
  }

  log(level, message) {
    this.logs.push([level, message]);
  }

  parameter(name) {
    return this.parameters.get(name);
  }

  count(metric, by) {
    this.counts.set(metric, (this.counts.get(metric) ?? 0) + Number(by));
  }

  gauge(metric, value) {
    this.gauges.set(metric, value);
  }

  task() {
    return { job: "test", operator: "test", subtask: 0, parallelism: 1, attempt: 0 };
  }

  now() {
    return this.time;
  }

  random() {
    return ++this.seed;
  }

  setTimers(clock, keys, times) {
    keys.forEach((key, at) => {
      const timer = { clock, key: this.keys[key], time: times[at] };
      this.timers.set(`${clock} ${timer.time} ${timer.key}`, timer);
    });
  }

  clearTimers(clock, keys, times) {
    keys.forEach((key, at) => this.timers.delete(`${clock} ${times[at]} ${this.keys[key]}`));
  }

  openValue(name) {
    const { schema } = this.states[name];
    const at = (key) => `${name} ${this.keys[key]}`;
    return {
      read: (keys) => this._called(cellsOf(schema, Array.from(keys, (key) => this.stored.get(at(key))))),
      write: (keys, cells) => {
        this._called();
        readCells(schema, cells).forEach((row, index) => this.stored.set(at(keys[index]), row));
      },
    };
  }

  openList(name) {
    const { schema } = this.states[name];
    const list = (key) => this._entry(`${name} ${this.keys[key]}`, () => []);
    return {
      read: (keys) => {
        const lists = Array.from(keys, list);
        const offsets = Uint32Array.of(0, ...runningTotals(lists.map((items) => items.length)));
        return this._called({ offsets, items: batchOf(schema, lists.flat()) });
      },
      append: (keys, { offsets, items }) => {
        const rows = readRows(schema, this._called(items));
        keys.forEach((key, at) => list(key).push(...rows.slice(offsets[at], offsets[at + 1])));
      },
      clear: (keys) => this._called(keys).forEach((key) => list(key).splice(0)),
    };
  }

  openMap(name) {
    const { schema } = this.states[name];
    const map = (key) => this._entry(`${name} ${this.keys[key]}`, () => new Map());
    const text = (bytes) => String.fromCharCode(...bytes);
    return {
      read: (keys, names) => {
        const rows = unpackVar(names).map((bytes, at) => map(keys[at]).get(text(bytes)));
        return this._called(cellsOf(schema, rows));
      },
      write: (keys, names, cells) => {
        this._called();
        const rows = readCells(schema, cells);
        unpackVar(names).forEach((bytes, at) => {
          if (isSet(cells.present, at)) map(keys[at]).set(text(bytes), rows[at]);
          else map(keys[at]).delete(text(bytes));
        });
      },
      scan: (keys, start, limit) => {
        const from = start === undefined ? "" : text(start);
        const found = Array.from(keys, (key) => {
          const entries = [...map(key)].filter(([entry]) => entry >= from);
          return entries.sort(([a], [b]) => (a < b ? -1 : 1)).slice(0, limit);
        });
        const offsets = Uint32Array.of(0, ...runningTotals(found.map((entries) => entries.length)));
        const entries = found.flat();
        const bytes = entries.map(([entry]) => Uint8Array.from(entry, (character) => character.charCodeAt(0)));
        const values = batchOf(schema, entries.map(([, row]) => row));
        return this._called({ offsets, mapKeys: packVar(bytes), values });
      },
      clear: (keys) => this._called(keys).forEach((key) => map(key).clear()),
    };
  }

  openItems(name) {
    const { schema } = this.states[name];
    return {
      read: () => this.items.get(name) ?? batchOf(schema, []),
      replace: (items) => this.items.set(name, this._called(items)),
    };
  }

  _entry(key, make) {
    if (!this.stored.has(key)) this.stored.set(key, make());
    return this.stored.get(key);
  }

  _called(result) {
    this.calls += 1;
    return result;
  }
}

export function runningTotals(lengths) {
  let total = 0;
  return lengths.map((length) => (total += length));
}
