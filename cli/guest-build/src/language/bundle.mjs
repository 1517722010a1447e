// Makes a component of a project: bundles its files and the SDK's, and has componentize-js put them into an engine. Run by
// `millstream build` in the project's folder node_modules, whose tools it takes, with one argument: a JSON object of the paths and names below.

import { readFileSync, writeFileSync } from "node:fs";
import { relative, resolve } from "node:path";

import { componentize } from "@bytecodealliance/componentize-js";
import * as esbuild from "esbuild";

const { project, entry, bundle, output, wit, module } = JSON.parse(process.argv[2]);

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const PROGRAM = `
import * as context from "millstream:function/context@0.1.0";
import * as state from "millstream:function/state@0.1.0";
import * as operatorState from "millstream:function/operator-state@0.1.0";
import * as timers from "millstream:function/timers@0.1.0";
import { component } from "millstream/component";
import * as functions from ${JSON.stringify(entry)};
export const { manifest, mapFunction, processFunction, aggregateFunction, windowFunction, lifecycle, migration } =
  component(${JSON.stringify(module)}, functions, { context, state, operatorState, timers });
`;

try {
  await esbuild.build({
    stdin: { contents: PROGRAM, resolveDir: project, sourcefile: "millstream-program" },
    bundle: true,
    format: "esm",
    platform: "neutral",
    mainFields: ["module", "main"],
    target: "es2022",
    external: ["millstream:function/*"],
    keepNames: true,
    sourcemap: "external",
    outfile: bundle,
  });
} catch {
  // It has said what is wrong.
  process.exit(1);
}

const map = JSON.parse(readFileSync(`${bundle}.map`, "utf8"));
const code = `${readFileSync(bundle, "utf8")}\nglobalThis.millstreamLines = ${JSON.stringify(linesOf(map))};\n`;
try {
  const { component } = await componentize(code, {
    witPath: wit,
    worldName: "module",
    disableFeatures: ["stdio", "random", "clocks", "http", "fetch-event"],
  });
  writeFileSync(output, component);
} catch (error) {
  console.error(String(error.message ?? error).trim());
  process.exit(1);
}

// For each line of the bundle, which file of the project it comes from and which line there. Those of the SDK have none.
function linesOf({ sources, mappings }) {
  const own = sources.map((source) => {
    const path = relative(project, resolve(bundle, "..", source));
    return path.startsWith("..") || path.includes("node_modules") || path.includes(".millstream") ? null : path;
  });
  const at = { source: 0, line: 0 };
  const lines = mappings.split(";").map((line) => {
    const first = line.split(",").filter(Boolean).map(decode);
    let found = null;
    for (const [, source = 0, original = 0] of first) {
      at.source += source;
      at.line += original;
      if (found === null && own[at.source] !== null) found = [at.source, at.line + 1];
    }
    return found ?? 0;
  });
  return { sources: own, lines: lines.map((line) => line || []) };
}

// The numbers of one mapping, each with the sign in its lowest bit and five bits a character.
function decode(segment) {
  const numbers = [];
  let [number, shift] = [0, 0];
  for (const character of segment) {
    const digit = DIGITS.indexOf(character);
    number += (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(number & 1 ? -(number >> 1) : number >> 1);
    [number, shift] = [0, 0];
  }
  return numbers;
}
