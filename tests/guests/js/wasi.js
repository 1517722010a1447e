// A map function that uses what the engine has through WASI: `stamp` gives each row the engine's time and a random
// number.

const MANIFEST = {
  manifest: 1,
  module: { name: "js_wasi", version: "0.1.0", doc: "A map function in JavaScript, with WASI" },
  functions: [
    {
      name: "stamp",
      kind: "map",
      doc: "The time and a random number for each row",
      inputs: [
        {
          name: "input",
          distribution: "any",
          times: false,
          columns: [{ name: "value", type: "int64", nullable: false }],
        },
      ],
      outputs: [
        {
          name: "output",
          carry: "extend",
          columns: [
            { name: "time", type: "float64", nullable: false },
            { name: "random", type: "float64", nullable: false },
          ],
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
    if (name !== "stamp") throw "this module has one function, `stamp`";
  },

  apply(input, _times) {
    const values = [...input.columns[0].values.val];
    const columns = [float64(values.map(() => Date.now())), float64(values.map(() => Math.random()))];
    return { outputs: [{ port: 0, rows: input.rows, origin: { tag: "each" }, columns }], rejected: [] };
  },

  close() {},
};

function float64(values) {
  return { validity: null, values: { tag: "float64", val: values }, children: [] };
}
