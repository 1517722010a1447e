// Time and chance of the current call: the host's, fixed within a call and the same in a replay.

import { host } from "./host.js";

const MASK = (1n << 64n) - 1n;

let current;

// Starts a call: the host is asked at the first need.
export function beginCall() {
  current = { time: undefined, seed: undefined };
}

// A time of the host as a number; what lies at the ends of its range is infinite.
export function timeOf(time) {
  // The engine hands a single integer over without its sign.
  const number = Number(BigInt.asIntN(64, time));
  return Number.isSafeInteger(number) ? number : number < 0 ? -Infinity : Infinity;
}

// Processing time in milliseconds since the epoch.
export function now() {
  const call = callFor("time");
  call.time ??= timeOf(host().now());
  return call.time;
}

// A bigint of 64 bits: splitmix64 from the call's seed.
export function random() {
  const call = callFor("chance");
  call.seed = ((call.seed ?? BigInt.asUintN(64, host().random())) + 0x9e3779b97f4a7c15n) & MASK;
  let mixed = ((call.seed ^ (call.seed >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return mixed ^ (mixed >> 31n);
}

function callFor(what) {
  if (current === undefined) {
    throw new Error(`there is no ${what} while a module is built: ask for it within a function, which is called with its own`);
  }
  return current;
}
