// What the engine has of its own for time, chance, waiting and the network would be of the moment of the build, or end the
// instance without a word. In a component the call's time and chance take its place, or an error that says what to do.

import { now, random } from "./call.js";

// Is called before the user's modules are read, as those may keep a reference.
export function replaceEngine() {
  globalThis.Date = dateOf(globalThis.Date);
  globalThis.Math.random = fraction;
  define(globalThis.performance, "now", now);
  define(globalThis.performance, "timeOrigin", 0);
  define(globalThis.crypto, "getRandomValues", fill);
  define(globalThis.crypto, "randomUUID", uuid);
  for (const [name, remedy] of Object.entries(REFUSED)) define(globalThis, name, refusing(name, remedy));
}

// The engine's dates, of which one without a time has that of the call.
function dateOf(Engine) {
  const HostDate = new Proxy(Engine, {
    construct: (target, parts, made) => Reflect.construct(target, parts.length === 0 ? [now()] : parts, made),
    apply: () => new Engine(now()).toString(),
  });
  Engine.now = now;
  Engine.prototype.constructor = HostDate;
  return HostDate;
}

// A number from 0 up to 1, of the 53 bits that a double has.
function fraction() {
  return Number(random() >> 11n) / 2 ** 53;
}

function fill(array) {
  const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
  for (let at = 0; at < bytes.length; at++) bytes[at] = Number(random() & 0xffn);
  return array;
}

function uuid() {
  const digits = [random(), random()].map((number) => number.toString(16).padStart(16, "0")).join("");
  const variant = "89ab"[parseInt(digits[16], 16) & 3];
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-${variant}${digits.slice(17, 20)}-${digits.slice(20)}`;
}

function refusing(name, remedy) {
  return () => {
    throw new Error(`there is no \`${name}\` in a function: ${remedy}`);
  };
}

function define(target, name, value) {
  if (target !== undefined) Object.defineProperty(target, name, { value, writable: true, configurable: true });
}

const NO_TIMER = "nothing waits within a call; a process function has timers, by `ctx.setTimer` and `ctx.setProcessingTimer`";
const REFUSED = {
  fetch: "it has no network; what it needs comes as rows of a source, or as a parameter",
  setTimeout: NO_TIMER,
  setInterval: NO_TIMER,
};
