// Tests of functions without a component.

import type { Declaration } from "./index.js";

export interface Results<T = any> {
  rows: T[];
  /** For each row of the main output the row of the call that it comes from; null if it has its own time. */
  origins: (number | null)[];
  times: (number | null)[];
  rejected: { row: number; reason: string }[];
  side(name: string): any[];
}

interface Test {
  /** Sets a parameter, before the first rows. */
  parameter(name: string, value: unknown): this;
  beforeBarrier(): Results;
  endOfInput(): Results;
  /** What the function logged, counted and set. */
  readonly host: { logs: [string, string][]; counts: Map<string, number>; gauges: Map<string, number>; calls: number };
}

export declare function map(declaration: Declaration): Test & { run(rows: any[], times?: (number | null)[]): Results };
export declare function process(declaration: Declaration): Test & {
  /** Gives rows in one call, each with its key. */
  rows(rows: [key: any, row: any][], input?: string): Results;
  watermark(time: number): Results;
  processingTime(time: number): Results;
};
export declare function aggregate(declaration: Declaration): Test & {
  window(start: number, end: number): any;
  /** Finishes the groups of rows; in several parts, of which each is accumulated by itself and then merged. */
  run(rows: [key: any, row: any][], parts?: number): Results;
};
export declare function window(declaration: Declaration): Test & {
  window(start: number, end: number): any;
  run(rows: [key: any, row: any][]): Results;
};
