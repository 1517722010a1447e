// A map function against the bare interface: `double` makes of a nullable integer column one of twice its values.
// Null stays null.
//
// In this engine a 64-bit integer is a number, exact up to 2^53 only. A row whose value or result lies beyond is
// rejected rather than made wrong. An option that is none is `null`, and an `err` is what is thrown.

const MANIFEST = {
  manifest: 1,
  module: { name: "js_map", version: "0.1.0", doc: "A map function in JavaScript" },
  functions: [
    {
      name: "double",
      kind: "map",
      doc: "Twice a value; null stays null",
      inputs: [
        {
          name: "input",
          distribution: "any",
          times: false,
          columns: [{ name: "value", type: "int64", nullable: true }],
        },
      ],
      outputs: [
        {
          name: "output",
          carry: "extend",
          columns: [{ name: "doubled", type: "int64", nullable: true }],
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

export const mapFunction = {
  open(name) {
    if (name !== "double") throw "this module has one function, `double`";
  },

  apply(input, _times) {
    const [column] = input.columns;
    if (column?.values.tag !== "int64") throw "expected one column of 64-bit integers, `value`";
    const rows = doubleRows(column.values.val, column.validity);
    return rows.rejected.length === 0 ? everyRow(rows, column.validity) : pickedRows(rows, column.validity);
  },

  close() {},
};

// The results by row; where a row is null its value means nothing and is not looked at.
function doubleRows(values, validity) {
  const doubled = new Array(values.length).fill(0);
  const rejected = [];
  for (let row = 0; row < values.length; row++) {
    if (!isValid(validity, row)) continue;
    const result = values[row] * 2;
    if (Number.isSafeInteger(values[row]) && Number.isSafeInteger(result)) {
      doubled[row] = result;
    } else {
      rejected.push({ row, reason: "twice this value is no integer that JavaScript holds exactly", retryable: false });
    }
  }
  return { doubled, rejected };
}

function everyRow({ doubled }, validity) {
  const output = { port: 0, rows: doubled.length, origin: { tag: "each" }, columns: [int64(doubled, validity)] };
  return { outputs: [output], rejected: [] };
}

function pickedRows({ doubled, rejected }, validity) {
  const refused = new Set(rejected.map(({ row }) => row));
  const picked = [...doubled.keys()].filter((row) => !refused.has(row));
  const pickedValidity = validity && bitmap(picked.map((row) => isValid(validity, row)));
  const column = int64(picked.map((row) => doubled[row]), pickedValidity);
  const output = { port: 0, rows: picked.length, origin: { tag: "picked", val: picked }, columns: [column] };
  return { outputs: [output], rejected };
}

function int64(values, validity) {
  return { validity, values: { tag: "int64", val: values }, children: [] };
}

function isValid(validity, row) {
  return validity === null || ((validity[row >> 3] >> (row & 7)) & 1) === 1;
}

function bitmap(bits) {
  const bytes = new Uint8Array((bits.length + 7) >> 3);
  bits.forEach((bit, row) => (bytes[row >> 3] |= bit << (row & 7)));
  return bytes;
}
