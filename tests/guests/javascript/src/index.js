// Functions that use all of the interface, in JavaScript: the same as in every other language.

import {
  aggregate,
  filter,
  listState,
  map,
  mapState,
  operatorState,
  parameter,
  process,
  Reject,
  row,
  t,
  unionState,
  valueState,
  window,
} from "millstream";

const Plain = row({
  boolean: t.boolean,
  int32: t.int32,
  int64: t.bigint,
  float32: t.float32,
  float64: t.float64,
  timestamp: t.timestamp,
  date: t.date,
  utf8: t.utf8,
  binary: t.binary,
});

export const plainTypes = map({
  doc: "Every type as it came.",
  input: Plain,
  output: Plain,
  carry: "replace",
  map: (row) => row,
});

const Nullable = row({
  boolean: t.boolean.nullable,
  int32: t.int32.nullable,
  int64: t.bigint.nullable,
  float32: t.float32.nullable,
  float64: t.float64.nullable,
  timestamp: t.timestamp.nullable,
  date: t.date.nullable,
  utf8: t.utf8.nullable,
  binary: t.binary.nullable,
});

export const nullableTypes = map({
  doc: "Every type as it came, null or not.",
  input: Nullable,
  output: Nullable,
  carry: "replace",
  map: (row) => row,
});

const Number = row({ n: t.int64 });
const Doubled = row({ doubled: t.int64 });

export const doubled = map({
  doc: "Appends a column.",
  input: Number,
  output: Doubled,
  map: ({ n }) => ({ doubled: n * 2 }),
});

export const eventTimes = map({
  doc: "Reads event times and no column.",
  output: row({ event_time: t.timestamp.nullable }),
  times: true,
  map: (_row, ctx) => ({ event_time: ctx.eventTime }),
});

export const exploded = map({
  doc: "As many rows as the number says.",
  input: Number,
  output: row({ part: t.int64 }),
  *map({ n }) {
    for (let part = 0; part < n; part++) yield { part };
  },
});

export const kept = filter({
  doc: "Keeps even numbers.",
  input: Number,
  keep: ({ n }) => n % 2 === 0,
});

export const refused = map({
  doc: "Refuses odd numbers.",
  input: Number,
  output: Doubled,
  map({ n }) {
    if (n % 2 !== 0) throw new Reject(`${n} is odd`);
    return { doubled: n * 2 };
  },
});

export const chance = map({
  doc: "Emits the time and a random number.",
  output: row({ now: t.int64, random: t.bigint }),
  map: (_row, ctx) => ({ now: ctx.now(), random: BigInt.asIntN(64, ctx.random()) }),
});

export const place = map({
  doc: "Emits the job, the operator and the subtask.",
  output: row({ place: t.utf8 }),
  map(_row, ctx) {
    const { job, operator, subtask, parallelism, attempt } = ctx.task();
    return { place: `${job} ${operator}[${subtask}] of ${parallelism}, attempt ${attempt}` };
  },
});

export const configured = map({
  doc: "Emits its parameters.",
  output: row({ settings: t.utf8 }),
  parameters: {
    required: parameter(t.int64, { doc: "Has to be given." }),
    flag: parameter(t.boolean, { default: true }),
    int32: parameter(t.int32, { default: -3 }),
    float64: parameter(t.float64, { default: 1.5 }),
    text: parameter(t.utf8, { default: "text" }),
  },
  map(_row, { parameters: { required, flag, int32, float64, text } }) {
    return { settings: `${required} ${flag} ${int32} ${float64} ${text}` };
  },
});

export const measured = filter({
  doc: "Logs each number, counts it and sets a gauge to it.",
  input: Number,
  keep({ n }, ctx) {
    ctx.log(`number ${n}`);
    ctx.count("numbers");
    ctx.gauge("last_number", n);
    return true;
  },
});

const Command = row({ command: t.utf8, name: t.utf8, n: t.int64 });

export const registers = process({
  doc: "Does what its rows say to its states and timers, and answers.",
  key: t.utf8,
  input: Command,
  output: row({ answer: t.utf8 }),
  sides: { fired: row({ key: t.utf8, processing: t.boolean, time: t.int64 }) },
  states: {
    value: valueState(row({ number: t.int64, text: t.utf8.nullable }), { version: 3 }),
    list: listState(t.int64),
    map: mapState(t.utf8, t.int64),
  },
  timers: ["event", "processing"],
  process(key, { command, name, n }, ctx) {
    const { value, list, map } = ctx.state;
    switch (command) {
      case "set":
        return value.set({ number: n, text: name });
      case "clear":
        return value.clear();
      case "add":
        return list.add(n);
      case "replace":
        return list.set([n]);
      case "empty":
        return list.clear();
      case "put":
        return map.set(name, n);
      case "remove":
        return map.delete(name);
      case "wipe":
        return map.clear();
      case "timer":
        return ctx.setTimer(n);
      case "untimer":
        return ctx.clearTimer(n);
      case "processing-timer":
        return ctx.setProcessingTimer(n);
      case "look":
        return { answer: look(key, name, ctx) };
      default:
        throw new Reject(`unknown command \`${command}\``);
    }
  },
  onTimer(key, { clock, time }, ctx) {
    ctx.side.fired.emit({ key, processing: clock === "processing", time });
  },
});

function look(key, name, ctx) {
  const { value, list, map } = ctx.state;
  const pair = value.get();
  const entry = map.get(name);
  const shown = pair === undefined ? "None" : `Some((${pair.number}, "${pair.text ?? ""}"))`;
  const entries = map.entries().map(([name, n]) => `${name}=${n}`);
  const watermark = ctx.watermark === -Infinity ? "-9223372036854775808" : ctx.watermark;
  const found = entry === undefined ? "None" : `Some(${entry})`;
  return `${key}@${watermark}: value ${shown}, list [${list.get().join(", ")}], map [${entries.join(" ")}], entry ${found}`;
}

export const reminder = process({
  doc: "Every row, and a reminder of its key when the time comes that it has as its number.",
  input: Number,
  output: row({ reminder: t.boolean }),
  carry: "extend",
  process(_key, { n }, ctx) {
    ctx.setTimer(n);
    return { reminder: false };
  },
  onTimer: () => ({ reminder: true }),
});

const Total = row({ at: t.utf8, total: t.int64 });

function sum(numbers) {
  return numbers.reduce((sum, n) => sum + n, 0);
}

export const totals = process({
  doc: "Emits the subtask's total before each barrier and at the end of input.",
  input: Number,
  output: Total,
  states: { totals: operatorState(t.int64) },
  open({ state: { totals } }) {
    if (totals.items.length === 0) totals.items.push(0);
  },
  process(_key, { n }, { state: { totals } }) {
    totals.items[0] += n;
  },
  beforeBarrier: (ctx) => ctx.emitAt(0, { at: "barrier", total: sum(ctx.state.totals.items) }),
  endOfInput: (ctx) => ctx.emitAt(0, { at: "end", total: sum(ctx.state.totals.items) }),
});

export const positions = map({
  doc: "Gives each row of a subtask the next number; the last one goes out before each barrier and at the end.",
  input: Number,
  output: row({ n: t.int64, position: t.int64 }),
  carry: "replace",
  states: { last: operatorState(t.int64), steps: unionState(t.int64) },
  parameters: { step: parameter(t.int64, { default: 1 }) },
  open({ state: { last, steps }, parameters: { step } }) {
    if (last.items.length === 0) last.items.push(0);
    steps.items.push(step);
  },
  map({ n }, ctx) {
    const { last } = ctx.state;
    last.items[0] += ctx.parameters.step;
    ctx.count("numbered");
    return n >= 0 ? { n, position: last.items[0] } : null;
  },
  beforeBarrier: (ctx) => ctx.emitAt(1, { n: -1, position: ctx.state.last.items[0] }),
  endOfInput(ctx) {
    ctx.emitAt(2, { n: -2, position: ctx.state.last.items[0] });
    ctx.emitAt(3, { n: -3, position: ctx.state.steps.items.length });
  },
  close: (ctx) => console.log(`closed at ${ctx.state.last.items[0]}`),
});

export const summed = aggregate({
  doc: "The sum of a group, times the parameter; how often it has been opened goes out before barriers and at the end.",
  input: Number,
  accumulator: t.int64,
  output: Total,
  carry: "replace",
  states: { opened: operatorState(t.int64) },
  parameters: { factor: parameter(t.int64, { default: 10 }) },
  open: ({ state: { opened }, parameters: { factor } }) => void opened.items.push(factor),
  add: (sum, { n }) => sum + n,
  merge: (into, other) => into + other,
  finish: (sum, _key, _window, ctx) => ({ at: "window", total: sum * ctx.parameters.factor }),
  beforeBarrier: (ctx) => ctx.emitAt(1, { at: "barrier", total: ctx.state.opened.items.length }),
  endOfInput: (ctx) => ctx.emitAt(2, { at: "end", total: ctx.state.opened.items.length }),
});

export const longest = window({
  doc: "The length of a window that has the least number of rows; the longest goes out before barriers and at the end.",
  input: Number,
  output: Total,
  carry: "replace",
  states: { longest: operatorState(t.int64) },
  parameters: { least: parameter(t.int64, { default: 0 }) },
  open({ state: { longest } }) {
    if (longest.items.length === 0) longest.items.push(0);
  },
  apply(_key, _window, rows, { state: { longest }, parameters: { least } }) {
    longest.items[0] = Math.max(rows.length, longest.items[0]);
    return rows.length >= least ? { at: "window", total: rows.length } : null;
  },
  beforeBarrier: (ctx) => ctx.emitAt(1, { at: "barrier", total: ctx.state.longest.items[0] }),
  endOfInput: (ctx) => ctx.emitAt(2, { at: "end", total: ctx.state.longest.items[0] }),
});

const Text = row({ text: t.utf8 });

// Texts in the order of their bytes, as every language has them: JavaScript's own is that of halves of characters.
function compare(a, b) {
  const [left, right] = [[...a], [...b]];
  for (let at = 0; at < Math.min(left.length, right.length); at++) {
    const difference = left[at].codePointAt(0) - right[at].codePointAt(0);
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

export const joined = aggregate({
  doc: "Number of rows, smallest text and number of bytes of a group.",
  key: t.utf8,
  input: Text,
  accumulator: row({ rows: t.int64, smallest: t.utf8.nullable, all: t.utf8 }),
  output: row({
    group: t.utf8,
    start: t.int64,
    end: t.int64,
    rows: t.int64,
    smallest: t.utf8.nullable,
    bytes: t.int64,
  }),
  add(gathered, { text }) {
    gathered.rows += 1;
    gathered.all += text;
    if (gathered.smallest === null || compare(text, gathered.smallest) < 0) gathered.smallest = text;
  },
  merge(into, other) {
    into.rows += other.rows;
    into.all += other.all;
    const texts = [into.smallest, other.smallest].filter((text) => text !== null);
    into.smallest = texts.sort(compare)[0] ?? null;
  },
  finish: ({ rows, smallest, all }, group, { start, end }) => ({
    group,
    start,
    end,
    rows,
    smallest,
    bytes: new TextEncoder().encode(all).length,
  }),
});

const Contents = row({ contents: t.utf8 });

export const contents = window({
  doc: "Key, window and rows, as text.",
  key: t.utf8,
  input: Text,
  output: Contents,
  apply(key, { start, end }, rows) {
    const texts = rows.map(({ text }) => text).sort(compare);
    return { contents: `${key} [${start}, ${end}): ${texts.join(" ")}` };
  },
});

export const whole = window({
  doc: "One row for each row of a window over the whole stream that has more than one.",
  input: Text,
  output: Contents,
  carry: "replace",
  apply: (_key, _window, rows) => (rows.length > 1 ? rows.map(({ text }) => ({ contents: text })) : []),
});

export const matcher = process({
  doc: "Emits every pair of a left and a right row with the same key.",
  output: row({ n: t.int64, text: t.utf8 }),
  states: { lefts: listState(t.int64), rights: listState(t.utf8) },
  inputs: {
    left: {
      input: Number,
      process(_key, { n }, { state: { lefts, rights } }) {
        lefts.add(n);
        return rights.get().map((text) => ({ n, text }));
      },
    },
    right: {
      input: Text,
      process(_key, { text }, { state: { lefts, rights } }) {
        rights.add(text);
        return lefts.get().map((n) => ({ n, text }));
      },
    },
  },
});

export const failing = map({
  doc: "Fails at a negative number, with an error of the language.",
  input: Number,
  output: Doubled,
  map: function failing({ n }) {
    return { doubled: root(n) };
  },
});

function root(n) {
  if (n < 0) throw new RangeError(`no root of ${n}`);
  return Math.floor(Math.sqrt(n));
}

export const engineTime = map({
  doc: "Emits what JavaScript itself has for time and chance.",
  output: row({ now: t.int64, made: t.timestamp, random: t.float64, uuid: t.utf8 }),
  map: () => ({ now: Date.now(), made: new Date().getTime(), random: Math.random(), uuid: crypto.randomUUID() }),
});

export const reaching = map({
  doc: "Waits and reaches out, which nothing can.",
  input: Number,
  map({ n }) {
    if (n === 1) setTimeout(() => undefined, 10);
    else fetch("http://localhost/");
  },
});

export const promised = map({
  doc: "Returns a promise, which is no row.",
  input: Number,
  output: row({ doubled: t.int64.nullable }),
  map: async ({ n }) => ({ doubled: n * 2 }),
});
