// Values of a column to and from the typed arrays that cross the boundary, whole columns at a time.

export class MismatchError extends Error {
  name = "MismatchError";
}

const decoder = new TextDecoder("utf-8", { fatal: true });
const encoder = new TextEncoder();

export function isSet(bits, row) {
  return ((bits[row >> 3] >> (row & 7)) & 1) === 1;
}

// One bit a row; what is true is set.
export function packBits(values) {
  const bytes = new Uint8Array((values.length + 7) >> 3);
  for (let row = 0; row < values.length; row++) if (values[row]) bytes[row >> 3] |= 1 << (row & 7);
  return bytes;
}

// The values of a column as an array, null where it is null.
export function decode(column, { name, type }, rows) {
  if (column.values.tag !== type.layout) {
    throw new MismatchError(`column \`${name}\`: expected ${type.layout} values, found ${column.values.tag}`);
  }
  const values = READERS[type.name](column.values.val, rows, column.validity, name);
  const { validity } = column;
  if (validity) for (let row = 0; row < rows; row++) if (!isSet(validity, row)) values[row] = null;
  return values;
}

const asArray = (values) => Array.from(values);

const READERS = {
  boolean: (bits, rows) => Array.from({ length: rows }, (_, row) => isSet(bits, row)),
  int32: asArray,
  date: asArray,
  float32: asArray,
  float64: asArray,
  bigint: asArray,
  int64: safeNumbers,
  timestamp: safeNumbers,
  utf8: readTexts,
  binary: readBytes,
};

function safeNumbers(values, rows, validity, name) {
  const numbers = new Array(rows);
  for (let row = 0; row < rows; row++) {
    const number = Number(values[row]);
    if (!Number.isSafeInteger(number) && (!validity || isSet(validity, row))) {
      throw new MismatchError(
        `column \`${name}\`, row ${row}: ${values[row]} is no integer that a number holds exactly: declare it as t.bigint`,
      );
    }
    numbers[row] = number;
  }
  return numbers;
}

function readTexts({ offsets, bytes }, rows) {
  const texts = new Array(rows);
  const all = decoder.decode(bytes);
  // Where every character is a byte, text is cut out of the whole.
  const ascii = all.length === bytes.length;
  for (let row = 0; row < rows; row++) {
    const [start, end] = [offsets[row], offsets[row + 1]];
    texts[row] = ascii ? all.slice(start, end) : decoder.decode(bytes.subarray(start, end));
  }
  return texts;
}

function readBytes({ offsets, bytes }, rows) {
  return Array.from({ length: rows }, (_, row) => bytes.slice(offsets[row], offsets[row + 1]));
}

// A column of values, of which those of a nullable column may be null or undefined.
export function encode(values, { name, type }) {
  let validity;
  if (type.isNullable && values.some((value) => value === null || value === undefined)) {
    validity = packBits(values.map((value) => value !== null && value !== undefined));
  }
  const wrong = (row) => {
    const may = type.isNullable ? " or null" : "";
    return new MismatchError(
      `column \`${name}\`, row ${row}: expected ${type.expected}${may}, found ${shown(values[row])}`,
    );
  };
  const has = (row) => validity === undefined || isSet(validity, row);
  const val = WRITERS[type.name](values, has, wrong);
  return { validity, values: { tag: type.layout, val }, children: new Uint32Array(0) };
}

// A component has several sets of built-in classes, so that `instanceof` does not tell.
export function isPromise(value) {
  return typeof value?.then === "function";
}

// A value in an error.
export function shown(value) {
  if (isPromise(value)) return "a promise: functions cannot be async";
  if (typeof value === "function") return "a function";
  const text = typeof value === "bigint" ? `${value}n` : (JSON.stringify(value) ?? String(value));
  return text.slice(0, 80);
}

function numbers(make, fits, convert = (value) => value) {
  return (values, has, wrong) => {
    const array = new make(values.length);
    for (let row = 0; row < values.length; row++) {
      if (!has(row)) continue;
      if (!fits(values[row])) throw wrong(row);
      array[row] = convert(values[row]);
    }
    return array;
  };
}

const isNumber = (value) => typeof value === "number";
const isInt32 = (value) => typeof value === "number" && (value | 0) === value;
const isInt64 = (value) => typeof value === "bigint" && BigInt.asIntN(64, value) === value;

const WRITERS = {
  boolean: writeBits,
  int32: numbers(Int32Array, isInt32),
  date: numbers(Int32Array, isInt32),
  int64: numbers(BigInt64Array, Number.isSafeInteger, BigInt),
  timestamp: numbers(BigInt64Array, Number.isSafeInteger, BigInt),
  bigint: numbers(BigInt64Array, isInt64),
  float32: numbers(Float32Array, isNumber),
  float64: numbers(Float64Array, isNumber),
  utf8: writeTexts,
  binary: writeBytes,
};

function writeBits(values, has, wrong) {
  values.forEach((value, row) => {
    if (has(row) && typeof value !== "boolean") throw wrong(row);
  });
  return packBits(values);
}

function writeTexts(values, has, wrong) {
  const texts = values.map((value, row) => {
    if (!has(row)) return "";
    if (typeof value !== "string" || !value.isWellFormed()) throw wrong(row);
    return value;
  });
  const bytes = encoder.encode(texts.join(""));
  const offsets = new Uint32Array(texts.length + 1);
  let characters = 0;
  for (let row = 0; row < texts.length; row++) {
    characters += texts[row].length;
    offsets[row + 1] = characters;
  }
  if (characters !== bytes.length) {
    for (let row = 0; row < texts.length; row++) offsets[row + 1] = offsets[row] + byteLength(texts[row]);
  }
  return { offsets, bytes };
}

// How many bytes a text has as UTF-8.
function byteLength(text) {
  let length = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x80) length += 1;
    else if (code < 0x800) length += 2;
    // The two halves of a pair come to four.
    else length += code >= 0xd800 && code < 0xe000 ? 2 : 3;
  }
  return length;
}

function writeBytes(values, has, wrong) {
  const runs = values.map((value, row) => {
    if (!has(row)) return new Uint8Array(0);
    if (!isBytes(value)) throw wrong(row);
    return value;
  });
  return packVar(runs);
}

export function isBytes(value) {
  return Object.prototype.toString.call(value) === "[object Uint8Array]";
}

// Offsets and one run of bytes.
export function packVar(runs) {
  const offsets = new Uint32Array(runs.length + 1);
  runs.forEach((run, row) => (offsets[row + 1] = offsets[row] + run.length));
  const bytes = new Uint8Array(offsets[runs.length]);
  runs.forEach((run, row) => bytes.set(run, offsets[row]));
  return { offsets, bytes };
}

export function unpackVar({ offsets, bytes }) {
  return Array.from({ length: offsets.length - 1 }, (_, row) => bytes.slice(offsets[row], offsets[row + 1]));
}
