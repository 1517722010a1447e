// The exports of a component. `millstream build` makes the program that it starts from, which hands in the imports and the
// user's functions.
//
// One instance is one open function. What a function throws ends the instance: a trap carries no text, so the error and
// its stack are handed to the host first. What the SDK itself refuses is the error of the call.

import { beginCall } from "./call.js";
import { MismatchError } from "./columns.js";
import { replaceEngine } from "./engine.js";
import { functionsOf } from "./functions.js";
import { setHost } from "./host.js";
import { cellsOf, readCells } from "./rows.js";

const VERSION = "0.1.0";

replaceEngine();

export function component(module, exports, imports) {
  setHost(hostOf(imports));
  const functions = functionsOf(exports);
  const manifest = JSON.stringify({
    manifest: 1,
    module: { ...module, sdk: `javascript ${VERSION}` },
    functions: [...functions.values()].map((declaration) => declaration.describe()),
  });
  let opened;

  const open = (name, kind) => {
    const found = functions.get(name);
    if (found === undefined) {
      throw new MismatchError(`no function \`${name}\` in this module: expected one of ${[...functions.keys()].join(", ")}`);
    }
    if (found.kind !== kind) {
      throw new MismatchError(`\`${name}\` is of kind ${found.kind}: expected a function of kind ${kind}`);
    }
    console.log = console.info = console.debug = (...words) => imports.context.log("info", text(words));
    console.warn = console.error = (...words) => imports.context.log("warn", text(words));
    opened = found.open();
  };
  const close = () => {
    opened?.hook("close");
    opened = undefined;
  };
  const call = (method) => (...parts) => opened[method](...parts);
  const migrate = (state, version, cells) => {
    beginCall();
    const { from, to, migrate } = opened.declaration.migration(state, version);
    const rows = readCells(from, cells).map((row) => (row === undefined ? undefined : migrate(row)));
    return { present: cells.present, values: cellsOf(to, rows).values };
  };

  const reported = (functions) =>
    Object.fromEntries(Object.entries(functions).map(([name, each]) => [name, report(each, imports.context)]));
  return {
    manifest: { describe: () => manifest },
    mapFunction: reported({ open: (name) => open(name, "map"), apply: call("apply"), close }),
    processFunction: reported({
      open: (name) => open(name, "process"),
      process: call("process"),
      onTimer: call("onTimer"),
      close,
    }),
    aggregateFunction: reported({
      open: (name) => open(name, "aggregate"),
      accumulate: call("accumulate"),
      merge: call("merge"),
      finish: call("finish"),
      close,
    }),
    windowFunction: reported({ open: (name) => open(name, "window"), apply: call("apply"), close }),
    lifecycle: reported({
      beforeBarrier: () => opened.hook("beforeBarrier"),
      endOfInput: () => opened.hook("endOfInput"),
    }),
    migration: reported({ migrate }),
  };
}

function report(each, context) {
  return (...parts) => {
    try {
      return each(...parts);
    } catch (error) {
      // The engine takes `payload` for the error of the call.
      if (error instanceof MismatchError) throw Object.assign(error, { payload: error.message });
      context.panicked(described(error));
      throw error;
    }
  };
}

// An error with its stack; whatever else was thrown, as text.
function described(error) {
  if (!(error instanceof Error)) return `thrown: ${text([error])}`;
  return [`${error.name}: ${error.message}`, ...framesOf(error.stack ?? "")].join("\n");
}

// The frames of a stack in the user's files: the build leaves behind which line of the bundle comes from where.
function framesOf(stack) {
  const { sources, lines } = globalThis.millstreamLines ?? { sources: [], lines: [] };
  return stack.split("\n").flatMap((frame) => {
    const [, name, line] = /^(.*)@source\.js:(\d+)(?::\d+)?$/.exec(frame) ?? [];
    const [source, original] = lines[line - 1] ?? [];
    return original === undefined ? [] : [`  at ${name || "a function"} (${sources[source]}:${original})`];
  });
}

function text(words) {
  const shown = (word) => (typeof word === "object" ? (JSON.stringify(word) ?? String(word)) : String(word));
  return words.map(shown).join(" ");
}

// The imports under the names that the SDK has for them.
function hostOf({ context, state, operatorState, timers }) {
  return {
    log: (level, message) => context.log(level, message),
    parameter: (name) => context.parameter(name),
    count: (metric, by) => context.count(metric, by),
    gauge: (metric, value) => context.gauge(metric, value),
    task: () => context.task(),
    now: () => context.now(),
    random: () => context.random(),
    openValue: (name) => state.ValueState.open(name),
    openList: (name) => state.ListState.open(name),
    openMap: (name) => state.MapState.open(name),
    openItems: (name) => operatorState.Items.open(name),
    setTimers: (clock, keys, times) => timers.set(clock, keys, times),
    clearTimers: (clock, keys, times) => timers.clear(clock, keys, times),
  };
}
