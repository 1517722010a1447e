// Parameters that a job file may set, typed and checked when a function opens.

import { MismatchError } from "./columns.js";
import { host } from "./host.js";
import { DeclarationError, isType } from "./types.js";

const PARSERS = {
  boolean: (text) => ({ true: true, false: false })[text],
  int32: (text) => integer(text, -(2 ** 31), 2 ** 31 - 1),
  int64: (text) => integer(text, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  float32: number,
  float64: number,
  utf8: (text) => text,
};

class Parameter {
  constructor(type, otherwise, doc) {
    this.type = type;
    this.otherwise = otherwise;
    this.doc = doc;
  }
}

// A parameter of a type; without a default the job file has to set it.
export function parameter(type, { default: otherwise, doc = "" } = {}) {
  if (!isType(type) || !(type.name in PARSERS) || type.isNullable) {
    throw new DeclarationError(`a parameter is one of t.${Object.keys(PARSERS).join(", t.")}`);
  }
  return new Parameter(type, otherwise, doc);
}

export function describeParameters(parameters) {
  return Object.entries(parameters).map(([name, { type, otherwise, doc }]) => ({
    name,
    type: type.name,
    doc,
    ...(otherwise !== undefined && { default: String(otherwise) }),
  }));
}

export function readParameters(parameters) {
  const entries = Object.entries(parameters).map(([name, { type, otherwise }]) => {
    const text = host().parameter(name) ?? undefined;
    if (text === undefined && otherwise === undefined) {
      throw new MismatchError(`parameter \`${name}\` is missing: expected a value of type ${type.name} in the job file`);
    }
    const value = text === undefined ? otherwise : PARSERS[type.name](text);
    if (value === undefined) {
      throw new MismatchError(`parameter \`${name}\`: found \`${text}\`, expected ${type.name}`);
    }
    return [name, value];
  });
  return Object.fromEntries(entries);
}

function integer(text, least, most) {
  const value = Number(text);
  return /^[+-]?\d+$/.test(text) && value >= least && value <= most ? value : undefined;
}

function number(text) {
  const value = Number(text);
  return text.trim() === "" || (Number.isNaN(value) && text !== "NaN") ? undefined : value;
}
