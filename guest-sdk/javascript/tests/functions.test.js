// Functions of every kind under the test harness, and what of them is refused with which words.

import assert from "node:assert/strict";
import test from "node:test";

import { aggregate, DeclarationError, filter, listState, map, mapState, parameter, process, Reject, row, t, valueState, window } from "../src/index.js";
import { decode, encode } from "../src/columns.js";
import { functionsOf, snakeCase } from "../src/functions.js";
import * as testing from "../src/testing.js";

const Number = row({ n: t.int64 });
const Doubled = row({ doubled: t.int64 });

test("what a map function returns says how many rows come of one", () => {
  const repeated = map({
    input: Number,
    output: Doubled,
    *map({ n }) {
      for (let at = 0; at < n; at++) {
        if (n > 3) throw new Reject("too many");
        yield { doubled: n };
      }
    },
  });
  const results = testing.map(repeated).run([{ n: 2 }, { n: 4 }, { n: 0 }]);
  assert.deepEqual(results.rows, [{ doubled: 2 }, { doubled: 2 }]);
  assert.deepEqual(results.origins, [0, 0]);
  assert.deepEqual(results.rejected, [{ row: 1, reason: "too many" }]);
  const even = filter({ input: Number, keep: ({ n }) => n % 2 === 0 });
  assert.deepEqual(testing.map(even).run([{ n: 1 }, { n: 2 }]).origins, [1]);
});

test("what is no row is refused, also where every column may be null", () => {
  const Maybe = row({ a: t.int64.nullable, b: t.utf8.nullable });
  const made = (value, output = Maybe) => () => testing.map(map({ output, map: () => value })).run([{}]);
  const expected = "`output`, emitted for row 0: expected a row, an object with some of `a`, `b`, found ";
  for (const [value, found] of [
    [Promise.resolve({ a: 1 }), "a promise: functions cannot be async"],
    [5, "5"],
    ["text", '"text"'],
    [{ c: 1 }, '{"c":1}'],
    [[1], "1"],
    [[[{ a: 1 }]], '[{"a":1}]'],
    [true, "true"],
    [() => ({ a: 1 }), "a function"],
  ]) {
    assert.throws(made(value), { name: "MismatchError", message: expected + found });
  }
  assert.throws(made(async function* () {}()), /expected a row/);
  assert.throws(made(Promise.resolve(), null), /expected a row, an object, found a promise/);
  assert.deepEqual(made({ b: "x" })().rows, [{ a: null, b: "x" }]);
  assert.deepEqual(made(Object.create({ a: 1 }))().rows, [{ a: 1, b: null }]);
  assert.deepEqual(made({ other: 1 }, null)().rows, [{}]);
  const columns = map({ input: Maybe, columns: async () => ({}) });
  assert.throws(() => testing.map(columns).run([{ a: 1 }]), /`columns` returned a promise/);
});

test("what a filter, a hook, state and accumulators are given is checked too", () => {
  const Maybe = row({ a: t.int64.nullable });
  const refused = (call, words) => assert.throws(call, (error) => error.name === "MismatchError" && error.message.includes(words));
  const kept = (keep) => () => testing.map(filter({ input: Number, keep })).run([{ n: 1 }]);
  refused(kept(async () => false), "`keep` returned a promise: functions cannot be async, expected true or false");
  refused(kept(() => undefined), "`keep` returned undefined, expected true or false");
  refused(() => testing.map(map({ open: async () => undefined, map: () => null })).run([{}]), "`open` returned a promise");
  const last = process({ states: { last: valueState(Maybe) }, process: (_key, _row, ctx) => ctx.state.last.set(7) });
  refused(() => testing.process(last).rows([[null]]), "row 0: expected a row, an object with `a`, found 7");
  const sums = aggregate({ accumulator: Maybe, add: async () => ({ a: 1 }), finish: () => null });
  refused(() => testing.aggregate(sums).run([[null, {}]]), "row 0: expected a row, an object with `a`, found a promise");
});

test("columns go in and come out", () => {
  const positive = map({
    input: Number,
    output: Doubled,
    columns({ n }) {
      const picked = n.flatMap((n, at) => (n > 0 ? [at] : []));
      return { doubled: picked.map((at) => n[at] * 2), picked };
    },
  });
  const results = testing.map(positive).run([{ n: 1 }, { n: -1 }, { n: 3 }]);
  assert.deepEqual([results.rows, results.origins], [[{ doubled: 2 }, { doubled: 6 }], [0, 2]]);
});

test("every type comes back with nulls and extremes", () => {
  const bytes = new Uint8Array([0, 255]);
  for (const [type, values] of [
    [t.boolean, Array.from({ length: 18 }, (_, at) => at % 2 === 0)],
    [t.int32, [-(2 ** 31), 2 ** 31 - 1]],
    [t.int64, [globalThis.Number.MIN_SAFE_INTEGER, globalThis.Number.MAX_SAFE_INTEGER]],
    [t.bigint, [-(2n ** 63n), 2n ** 63n - 1n]],
    [t.float64, [1e300, -0, Infinity]],
    [t.utf8, ["", "Zürich 🌊", "\0", "水"]],
    [t.binary, [new Uint8Array(0), bytes]],
  ]) {
    const spec = { name: "x", type };
    assert.deepEqual(decode(encode(values, spec), spec, values.length), values);
    const nullable = { name: "x", type: type.nullable };
    const some = [null, ...values, null];
    assert.deepEqual(decode(encode(some, nullable), nullable, some.length), some);
  }
});

test("a value of another type is named with its row", () => {
  for (const [type, value, expected] of [
    [t.int64, 1.5, "an integer that a number holds exactly (t.bigint has all of 64 bits), found 1.5"],
    [t.bigint, 2n ** 63n, "a bigint of 64 bits, found 9223372036854775808n"],
    [t.int32, 2 ** 31, "an integer of 32 bits, found 2147483648"],
    [t.utf8, "\ud800", "a string, found"],
    [t.float64, null, "a number, found null"],
    [t.boolean.nullable, 1, "true or false or null, found 1"],
  ]) {
    assert.throws(() => encode([value], { name: "x", type }), { message: new RegExp(`^column \`x\`, row 0: expected ${expected.replace(/[().]/g, "\\$&")}`) });
  }
  const huge = encode([2n ** 60n], { name: "x", type: t.bigint });
  assert.throws(() => decode(huge, { name: "x", type: t.int64 }, 1), /declare it as t.bigint/);
});

test("state is read and written once a call, and timers fire in order", () => {
  const visits = process({
    key: t.utf8,
    input: row({ time: t.int64 }),
    output: row({ visitor: t.utf8, clicks: t.int64 }),
    states: { clicks: valueState(t.int64), all: listState(t.int64), named: mapState(t.int64, t.utf8) },
    parameters: { pause: parameter(t.int64, { default: 10 }) },
    process(_visitor, { time }, ctx) {
      const clicks = ctx.state.clicks.get(0);
      if (clicks === 0) ctx.setTimer(time + ctx.parameters.pause);
      ctx.state.clicks.set(clicks + 1);
      ctx.state.all.add(time);
      ctx.state.named.set(-time, `at ${time}`);
    },
    onTimer(visitor, _timer, ctx) {
      assert.equal(ctx.state.all.get().length, ctx.state.named.entries().length);
      return { visitor, clicks: ctx.state.clicks.take() };
    },
  });
  const subject = testing.process(visits);
  subject.rows([["ann", { time: 0 }], ["bob", { time: 5 }], ["ann", { time: 9 }]]);
  assert.equal(subject.host.calls, 4);
  assert.deepEqual(subject.watermark(10).rows, [{ visitor: "ann", clicks: 2 }]);
  assert.deepEqual(subject.endOfInput().rows, [{ visitor: "bob", clicks: 1 }]);
});

test("accumulators are merged, and windows have their rows", () => {
  const mean = aggregate({
    key: t.utf8,
    input: Number,
    accumulator: row({ count: t.int64, sum: t.float64 }),
    output: row({ mean: t.float64 }),
    add(sum, { n }) {
      sum.count += 1;
      sum.sum += n;
    },
    merge(into, other) {
      into.count += other.count;
      into.sum += other.sum;
    },
    finish: ({ count, sum }) => ({ mean: sum / count }),
  });
  const rows = [2, 3, 7].map((n) => ["a", { n }]);
  for (const parts of [1, 2, 3]) assert.deepEqual(testing.aggregate(mean).run(rows, parts).rows, [{ mean: 4 }]);
  const count = window({
    input: Number,
    output: row({ rows: t.int64, end: t.int64 }),
    apply: (_key, { end }, rows) => ({ rows: rows.length, end }),
  });
  const keyless = aggregate({ input: Number, accumulator: t.int64, output: Number, add: (sum, { n }) => sum + n, finish: (n) => ({ n }) });
  assert.deepEqual(testing.aggregate(keyless).run(rows).rows, [{ n: 12 }]);
  const whole = rows.map(([, row]) => [undefined, row]);
  assert.deepEqual(testing.window(count).window(0, 9).run(whole).rows, [{ rows: 3, end: 9 }]);
});

test("what makes no manifest is refused with what was expected", () => {
  const refused = (declare, words) => assert.throws(declare, (error) => error instanceof DeclarationError && error.message.includes(words));
  refused(() => row({ n: "int" }), "field `n`: expected one of t.boolean");
  refused(() => map({ input: Number, mpa: () => null }), "a map function has no `mpa`: expected name, doc");
  refused(() => map({ input: Number }), "needs a function `map` or `columns`");
  refused(() => map({ map: () => null, states: { last: valueState(t.int64) } }), "is kept by key, and a map function has none");
  refused(() => mapState(t.float64, t.int64), "the key of a map state is one of t.utf8");
  assert.throws(() => testing.map(map({ map: () => null, parameters: { a: parameter(t.int64) } })).run([{}]), /parameter `a` is missing/);
});

test("functions are called as they are exported", () => {
  const declaration = filter({ input: Number, keep: () => true });
  assert.deepEqual([...functionsOf({ onlyDelayed: declaration, other: 1 }).keys()], ["only_delayed"]);
  assert.equal(snakeCase("parseHTTPLine"), "parse_http_line");
});
