// Rows to and from batches of columns.

import { decode, encode, isPromise, isSet, MismatchError, packBits, shown } from "./columns.js";

// The values of each column of a batch.
export function readColumns(schema, batch) {
  if (batch.columns.length < schema.columns.length) {
    throw new MismatchError(`expected ${schema.columns.length} columns, found ${batch.columns.length}`);
  }
  return schema.columns.map((column, at) => decode(batch.columns[at], column, batch.rows));
}

// The rows of a batch: objects, or the values themselves where there is one column without a row around it.
export function readRows(schema, batch) {
  const columns = readColumns(schema, batch);
  if (schema.single) return columns[0];
  const rows = new Array(batch.rows);
  const names = schema.columns.map(({ name }) => name);
  for (let row = 0; row < batch.rows; row++) {
    const object = {};
    for (let at = 0; at < names.length; at++) object[names[at]] = columns[at][row];
    rows[row] = object;
  }
  return rows;
}

// The columns of rows.
export function writeRows(schema, rows) {
  if (schema.single) return [encode(rows, schema.columns[0])];
  return schema.columns.map((column) => encode(rows.map((row) => row?.[column.name]), column));
}

// What is wrong with a value in the place of a row, or undefined. What a column may hold is told when it is written.
export function rowProblem({ single, columns }, row) {
  if (single) return undefined;
  // Rows without columns say nothing, so that nothing is a row of them.
  if (columns.length === 0 && (row === undefined || row === null)) return undefined;
  const isObject = typeof row === "object" && row !== null && !isPromise(row);
  if (isObject && (columns.length === 0 || columns.some(({ name }) => name in row))) return undefined;
  const names = columns.map(({ name }) => `\`${name}\``).join(", ");
  const expected = columns.length === 0 ? "an object" : `an object with ${columns.length === 1 ? "" : "some of "}${names}`;
  return `expected a row, ${expected}, found ${shown(row)}`;
}

function checkRows(schema, rows, has = () => true) {
  rows.forEach((row, at) => {
    if (!has(at)) return;
    const problem = rowProblem(schema, row);
    if (problem !== undefined) throw new MismatchError(`row ${at}: ${problem}`);
  });
}

export function batchOf(schema, rows) {
  checkRows(schema, rows);
  return { rows: rows.length, columns: writeRows(schema, rows) };
}

// The rows of cells, undefined where there is none: what stands there means nothing.
export function readCells(schema, { present, values }) {
  const there = Array.from({ length: values.rows }, (_, row) => isSet(present, row));
  if (!there.some(Boolean)) return new Array(values.rows).fill(undefined);
  return readRows(schema, values).map((row, at) => (there[at] ? row : undefined));
}

// Cells of rows, of which those that are undefined are absent.
export function cellsOf(schema, rows) {
  checkRows(schema, rows, (at) => rows[at] !== undefined);
  const present = packBits(rows.map((row) => row !== undefined));
  const columns = schema.columns.map(({ name, type }) => {
    const value = (row) => (schema.single ? row : row[name]);
    return encode(
      rows.map((row) => (row === undefined ? zero(type) : value(row))),
      { name, type },
    );
  });
  return { present, values: { rows: rows.length, columns } };
}

function zero(type) {
  if (type.isNullable) return null;
  return { boolean: false, utf8: "", binary: new Uint8Array(0), bigint: 0n }[type.name] ?? 0;
}
