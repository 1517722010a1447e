// What a function sees of the host during one call, beside its rows.

import { beginCall, now, random, timeOf } from "./call.js";
import { MismatchError } from "./columns.js";
import { host } from "./host.js";
import { rowProblem, writeRows } from "./rows.js";

export const NO_TIME = -(2n ** 63n);

// Thrown to refuse a row; the operator's policy says what becomes of it.
export class Reject extends Error {
  name = "Reject";
}

export class Context {
  constructor(declaration, states, parameters) {
    this.state = states;
    this.parameters = parameters;
    // The event time of the current row in milliseconds, or null; only for functions that say `times: true`.
    this.eventTime = null;
    this._collectors = declaration.ports.map((port, at) => new Collector(at, port));
    this.side = {};
    this._collectors.forEach((collector, at) => {
      if (at > 0) this.side[declaration.ports[at].name] = collector;
    });
    this._key = 0;
    this._begin();
  }

  // Emits a row to the main output, with the event time of the row, timer or window being handled.
  emit(row) {
    this._collectors[0].emit(row);
  }

  // Emits a row with an event time of its own. Only for an output that replaces, not one that carries columns.
  emitAt(time, row) {
    this._collectors[0].emitAt(time, row);
  }

  // Writes a line to the job's log, at the level trace, debug, info, warn or error.
  log(message, level = "info") {
    host().log(level, String(message));
  }

  // Adds to a counter of this operator.
  count(metric, by = 1) {
    this._counts.set(metric, (this._counts.get(metric) ?? 0) + by);
  }

  // Sets a gauge of this operator; the last value of a call is the one that is seen.
  gauge(metric, value) {
    this._gauges.set(metric, value);
  }

  // Who this is: job, operator, subtask, parallelism, attempt.
  task() {
    return host().task();
  }

  // Processing time in milliseconds since the epoch: fixed within a call, and the same in a replay.
  now() {
    return now();
  }

  // A random bigint of 64 bits, the same in a replay.
  random() {
    return random();
  }

  // All rows up to this event time have come, in milliseconds; -Infinity while there is no watermark. Of process
  // functions alone.
  get watermark() {
    return this._watermark;
  }

  // Fires when the watermark reaches the time. Setting a timer twice fires it once.
  setTimer(time) {
    this._change("event", time, true);
  }

  clearTimer(time) {
    this._change("event", time, false);
  }

  // Fires when the host's clock reaches the time.
  setProcessingTimer(time) {
    this._change("processing", time, true);
  }

  clearProcessingTimer(time) {
    this._change("processing", time, false);
  }

  _change(clock, time, set) {
    this._timers.set(`${clock} ${this._key} ${time}`, { clock, key: this._key, time: BigInt(time), set });
  }

  _begin(watermark = NO_TIME) {
    beginCall();
    this._watermark = timeOf(watermark);
    this._counts = new Map();
    this._gauges = new Map();
    this._timers = new Map();
  }

  // Says which row, and which key, the next lines are about.
  _at(row, key) {
    this._key = key;
    for (const collector of this._collectors) collector._row = row;
  }

  _flush() {
    this._counts.forEach((by, metric) => host().count(metric, BigInt(by)));
    this._gauges.forEach((value, metric) => host().gauge(metric, value));
    for (const clock of ["event", "processing"]) {
      for (const set of [false, true]) this._send(clock, set);
    }
    this._counts.clear();
    this._gauges.clear();
    this._timers.clear();
  }

  // A timer's last change counts, so there are at most four calls.
  _send(clock, set) {
    const chosen = [...this._timers.values()].filter((timer) => timer.clock === clock && timer.set === set);
    if (chosen.length === 0) return;
    const keys = Uint32Array.from(chosen, ({ key }) => key);
    const times = BigInt64Array.from(chosen, ({ time }) => time);
    if (set) host().setTimers(clock, keys, times);
    else host().clearTimers(clock, keys, times);
  }

  _outcome(rows, rejected = []) {
    return { outputs: this._collectors.flatMap((collector) => collector._finish(rows)), rejected };
  }
}

// Takes the rows of one output.
class Collector {
  constructor(port, { name, schema }) {
    this._port = port;
    this._name = name;
    this._schema = schema;
    this._row = 0;
    this._runs = [];
    this._start(false);
  }

  emit(row) {
    this._check(row);
    if (this._made) this._turn();
    this._origins.push(this._row);
    this._rows.push(row);
  }

  emitAt(time, row) {
    this._check(row);
    if (!this._made) this._turn();
    this._origins.push(BigInt(time));
    this._rows.push(row);
  }

  _check(row) {
    const problem = rowProblem(this._schema, row);
    if (problem !== undefined) throw new MismatchError(`\`${this._name}\`, emitted for row ${this._row}: ${problem}`);
  }

  _start(made) {
    this._made = made;
    this._origins = [];
    this._rows = [];
  }

  _turn() {
    if (this._rows.length > 0) this._runs.push({ made: this._made, origins: this._origins, rows: this._rows });
    this._start(!this._made);
  }

  _finish(callRows) {
    this._turn();
    const outputs = this._runs.map(({ made, origins, rows }) => ({
      port: this._port,
      rows: rows.length,
      origin: made ? { tag: "made", val: BigInt64Array.from(origins) } : origin(origins, callRows),
      columns: writeRows(this._schema, rows),
    }));
    this._runs = [];
    this._start(false);
    return outputs;
  }
}

function origin(origins, callRows) {
  const each = origins.length === callRows && origins.every((row, at) => row === at);
  return each ? { tag: "each" } : { tag: "picked", val: Uint32Array.from(origins) };
}
