// Time and chance of a call, in the place of the engine's. In a file of its own, as it changes what is global.

import assert from "node:assert/strict";
import test from "node:test";

import { beginCall } from "../src/call.js";
import { replaceEngine } from "../src/engine.js";
import { setHost } from "../src/host.js";

const EngineDate = globalThis.Date;

test("the engine's time and chance are those of the call", () => {
  replaceEngine();
  assert.throws(() => Date.now(), /there is no time while a module is built: ask for it within a function/);
  assert.throws(() => new Date(), /there is no time while a module is built/);
  assert.throws(() => Math.random(), /there is no chance while a module is built/);
  assert.equal(new Date(5).getTime(), 5);

  let time = 1_700_000_000_000n;
  setHost({ now: () => time, random: () => 7n });
  beginCall();
  assert.equal(Date.now(), 1_700_000_000_000);
  assert.equal(new Date().toISOString(), "2023-11-14T22:13:20.000Z");
  assert.equal(Date(), new Date().toString());
  const first = [Math.random(), Math.random()];
  assert.ok(first[0] !== first[1] && first.every((number) => number >= 0 && number < 1), first.join(" "));
  assert.match(crypto.randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.notEqual(crypto.randomUUID(), crypto.randomUUID());
  assert.ok(crypto.getRandomValues(new Uint16Array(64)).some((number) => number > 255));
  assert.equal(performance.timeOrigin + performance.now(), Date.now());
  time += 1n;
  assert.equal(Date.now(), 1_700_000_000_000, "it stands still within a call");
  beginCall();
  assert.equal(Date.now(), 1_700_000_000_001);
  assert.deepEqual([Math.random(), Math.random()], first, "a replay draws the same");
});

test("what would wait or reach out says what to do instead", () => {
  assert.throws(() => setTimeout(() => 0, 1), /there is no `setTimeout` in a function: nothing waits within a call; .*ctx.setTimer/);
  assert.throws(() => fetch("http://example.com"), /there is no `fetch` in a function: it has no network/);
});

test("dates are dates", () => {
  class Named extends Date {}
  for (const date of [new Date(0), new Named(0), new EngineDate(0)]) assert.ok(date instanceof Date);
  assert.ok(new Named(0) instanceof Named);
  assert.equal(new Date(0).constructor, Date);
  assert.equal(new Date(2020, 1, 29).getDate(), 29);
  assert.equal(Date.parse("1970-01-01T00:00:01Z"), 1000);
  assert.equal(Date.UTC(1970, 0, 1), 0);
});
