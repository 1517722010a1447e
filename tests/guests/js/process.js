// A process function against the bare interface: `count` gives each row its running number within its key.
//
// The counts are read for all keys of a call at once and written back at once, so that a call of a thousand rows
// costs two calls of the host. An `err` is what is thrown; an imported function that gives one throws it.

import { ValueState } from "millstream:function/state@0.1.0";

const MANIFEST = {
  manifest: 1,
  module: { name: "js_process", version: "0.1.0", doc: "A process function in JavaScript" },
  functions: [
    {
      name: "count",
      kind: "process",
      doc: "The running number of each row within its key",
      inputs: [{ name: "input", distribution: "keyed", times: false, columns: [] }],
      key: [],
      outputs: [
        {
          name: "output",
          carry: "extend",
          columns: [{ name: "count", type: "int64", nullable: false }],
        },
      ],
      states: [
        {
          name: "count",
          kind: "value",
          version: 1,
          columns: [{ name: "value", type: "int64", nullable: false }],
        },
      ],
    },
  ],
};

export const manifest = {
  describe() {
    return JSON.stringify(MANIFEST);
  },
};

let state = null;

export const processFunction = {
  open(name) {
    if (name !== "count") throw "this module has one function, `count`";
    state = ValueState.open("count");
  },

  process(input) {
    const keys = Array.from({ length: input.keys.rows }, (_, key) => key);
    const counts = readCounts(keys);
    if (input.keyOfRow.some((key) => key >= keys.length)) throw "a row's key is not among the call's keys";
    const numbers = input.keyOfRow.map((key) => ++counts[key]);
    state.write(keys, { present: allSet(keys.length), values: { rows: keys.length, columns: [int64(counts)] } });
    const output = { port: 0, rows: numbers.length, origin: { tag: "each" }, columns: [int64(numbers)] };
    return { outputs: [output], rejected: [] };
  },

  onTimer(_timers) {
    return { outputs: [], rejected: [] };
  },

  close() {
    state?.[Symbol.dispose]();
    state = null;
  },
};

// Each key's count so far; a key without one stands at zero.
function readCounts(keys) {
  const { present, values } = state.read(keys);
  const [column] = values.columns;
  if (column?.values.tag !== "int64") throw "the state `count` is not one column of 64-bit integers";
  return keys.map((key) => ((present[key >> 3] >> (key & 7)) & 1 ? column.values.val[key] : 0));
}

function int64(values) {
  return { validity: null, values: { tag: "int64", val: values }, children: [] };
}

function allSet(bits) {
  const bytes = new Uint8Array((bits + 7) >> 3).fill(0xff);
  if (bits % 8 !== 0) bytes[bytes.length - 1] = (1 << bits % 8) - 1;
  return bytes;
}
