// The types of columns, and rows made of them.

export class DeclarationError extends TypeError {
  name = "DeclarationError";
}

// A type of columns: how its values stand in a typed array, and what JavaScript has for them.
class Type {
  constructor(name, layout, expected, isNullable = false) {
    this.name = name;
    this.layout = layout;
    this.expected = expected;
    this.isNullable = isNullable;
  }

  // The same type, whose values may be null.
  get nullable() {
    return new Type(this.name, this.layout, this.expected, true);
  }

  // What the manifest calls it.
  get manifestName() {
    return this.name === "bigint" ? "int64" : this.name;
  }
}

export const t = {
  boolean: new Type("boolean", "bits", "true or false"),
  int32: new Type("int32", "int32", "an integer of 32 bits"),
  int64: new Type("int64", "int64", "an integer that a number holds exactly (t.bigint has all of 64 bits)"),
  bigint: new Type("bigint", "int64", "a bigint of 64 bits"),
  float32: new Type("float32", "float32", "a number"),
  float64: new Type("float64", "float64", "a number"),
  timestamp: new Type("timestamp", "int64", "an integer, milliseconds since the epoch"),
  date: new Type("date", "int32", "an integer, days since the epoch"),
  utf8: new Type("utf8", "var", "a string"),
  binary: new Type("binary", "var", "a Uint8Array"),
};

// The fields of a row, each a column.
class Row {
  constructor(fields) {
    this.fields = fields;
  }
}

export function row(fields) {
  for (const [name, type] of Object.entries(fields)) {
    if (!(type instanceof Type)) {
      throw new DeclarationError(`field \`${name}\`: expected one of ${NAMES}, found ${shown(type)}`);
    }
  }
  return new Row(fields);
}

// The columns of a row, of a single type (one column of this name), or of nothing.
export class Schema {
  constructor(of, singleName = "value") {
    this.single = of instanceof Type;
    this.columns = [];
    if (this.single) this.columns = [{ name: singleName, type: of }];
    else if (of instanceof Row) this.columns = Object.entries(of.fields).map(([name, type]) => ({ name, type }));
    else if (of !== undefined && of !== null) {
      throw new DeclarationError(`expected \`row({…})\` or one of ${NAMES}, found ${shown(of)}`);
    }
  }

  describe() {
    return this.columns.map(({ name, type }) => ({ name, type: type.manifestName, nullable: type.isNullable }));
  }
}

export function isType(value) {
  return value instanceof Type;
}

function shown(value) {
  return typeof value === "function" ? "a function" : JSON.stringify(value);
}

const NAMES = Object.keys(t)
  .map((name) => `t.${name}`)
  .join(", ");
