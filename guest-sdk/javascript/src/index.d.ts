// The types of the SDK: what is declared of rows, states and parameters is what functions see.

export interface Type<T> {
  readonly name: string;
  /** The same type, whose values may be null. */
  readonly nullable: Type<T | null>;
  readonly $value: T;
}

/** The types of columns. */
export declare const t: {
  readonly boolean: Type<boolean>;
  readonly int32: Type<number>;
  /** Integers that a number holds exactly; others are an error. */
  readonly int64: Type<number>;
  /** The same columns, with all of 64 bits. */
  readonly bigint: Type<bigint>;
  readonly float32: Type<number>;
  readonly float64: Type<number>;
  /** Milliseconds since the epoch, UTC. */
  readonly timestamp: Type<number>;
  /** Days since the epoch. */
  readonly date: Type<number>;
  readonly utf8: Type<string>;
  readonly binary: Type<Uint8Array>;
};

export interface Row<T> {
  readonly $value: T;
}

/** A row: a column a field. */
export declare function row<F extends Record<string, Type<any>>>(fields: F): Row<{ [K in keyof F]: F[K]["$value"] }>;

type Shape<T> = Type<T> | Row<T>;
/** What a row, or a type, is in JavaScript. */
export type ValueOf<S> = S extends { readonly $value: infer T } ? T : undefined;

export declare class Reject extends Error {}
export declare class MismatchError extends Error {}
export declare class DeclarationError extends TypeError {}

export interface ValueState<T> {
  get(): T | undefined;
  get(otherwise: T): T;
  set(value: T): void;
  clear(): void;
  take(): T | undefined;
  take(otherwise: T): T;
}

export interface ListState<T> {
  get(): T[];
  add(item: T): void;
  set(items: T[]): void;
  clear(): void;
  take(): T[];
}

export interface MapState<K, T> {
  get(key: K): T | undefined;
  get(key: K, otherwise: T): T;
  has(key: K): boolean;
  set(key: K, value: T): void;
  delete(key: K): void;
  entries(): [K, T][];
  clear(): void;
}

/** Items of a subtask: an array to read and to change. */
export interface Items<T> {
  items: T[];
}

export interface State<H> {
  readonly $handle: H;
}

interface StateOptions<T> {
  version?: number;
  /** How stored values of earlier versions are taken over. */
  migrations?: Record<number, { from: Shape<any>; migrate: (stored: any) => T }>;
}

export declare function valueState<T>(value: Shape<T>, options?: StateOptions<T>): State<ValueState<T>>;
export declare function listState<T>(item: Shape<T>, options?: StateOptions<T>): State<ListState<T>>;
export declare function mapState<K, T>(key: Type<K>, value: Shape<T>, options?: StateOptions<T>): State<MapState<K, T>>;
export declare function operatorState<T>(item: Shape<T>, options?: StateOptions<T>): State<Items<T>>;
export declare function unionState<T>(item: Shape<T>, options?: StateOptions<T>): State<Items<T>>;

export interface Parameter<T> {
  readonly $value: T;
}

/** A parameter that the job file may set; without a default it has to. */
export declare function parameter<T>(type: Type<T>, options?: { default?: T; doc?: string }): Parameter<T>;

export interface Collector<T> {
  emit(row: T): void;
  emitAt(time: number, row: T): void;
}

export interface TaskInfo {
  job: string;
  operator: string;
  subtask: number;
  parallelism: number;
  attempt: number;
}

export interface Window {
  start: number;
  end: number;
}

export interface Timer {
  clock: "event" | "processing";
  time: number;
}

type Sides = Record<string, Shape<any>>;
type States = Record<string, State<any>>;
type Parameters = Record<string, Parameter<any>>;

export interface Context<Out = any, D extends Sides = {}, S extends States = {}, P extends Parameters = {}>
  extends Collector<Out> {
  readonly state: { [K in keyof S]: S[K]["$handle"] };
  readonly parameters: { [K in keyof P]: P[K]["$value"] };
  readonly side: { [K in keyof D]: Collector<ValueOf<D[K]>> };
  /** The event time of the row; null if it has none. Only for functions that say `times: true`. */
  readonly eventTime: number | null;
  /** All rows up to this event time have come; -Infinity while there is no watermark. */
  readonly watermark: number;
  log(message: string, level?: "trace" | "debug" | "info" | "warn" | "error"): void;
  count(metric: string, by?: number): void;
  gauge(metric: string, value: number): void;
  task(): TaskInfo;
  /** Processing time: fixed within a call, and the same in a replay. */
  now(): number;
  /** A random number of 64 bits, the same in a replay. */
  random(): bigint;
  setTimer(time: number): void;
  clearTimer(time: number): void;
  setProcessingTimer(time: number): void;
  clearProcessingTimer(time: number): void;
}

type Emitted<T> = T | null | undefined | void | Iterable<T>;

interface Common<O, D extends Sides, S extends States, P extends Parameters> {
  /** In the manifest; without it the name of the export, in snake case. */
  name?: string;
  doc?: string;
  output?: O;
  sides?: D;
  carry?: "extend" | "replace";
  states?: S;
  parameters?: P;
  open?(ctx: Context<ValueOf<O>, D, S, P>): void;
  close?(ctx: Context<ValueOf<O>, D, S, P>): void;
  beforeBarrier?(ctx: Context<ValueOf<O>, D, S, P>): void;
  endOfInput?(ctx: Context<ValueOf<O>, D, S, P>): void;
}

/** What the functions below return: it has to be exported. */
export interface Declaration {
  readonly kind: string;
}

type AnyShape = Shape<any> | null | undefined;

export declare function map<
  I extends AnyShape = undefined,
  O extends AnyShape = undefined,
  D extends Sides = {},
  S extends States = {},
  P extends Parameters = {},
>(
  options: Common<O, D, S, P> & {
    input?: I;
    /** Sends event times too. */
    times?: boolean;
    map?(row: ValueOf<I>, ctx: Context<ValueOf<O>, D, S, P>): Emitted<ValueOf<O>>;
    /** Called once a batch, with an array a column; `picked` says which input row each output row comes from. */
    columns?(
      columns: { [K in keyof ValueOf<I>]: ValueOf<I>[K][] } & { rows: number },
      ctx: Context<ValueOf<O>, D, S, P>,
    ): { [K in keyof ValueOf<O>]: ArrayLike<ValueOf<O>[K]> } & { picked?: ArrayLike<number> };
  },
): Declaration;

export declare function filter<
  I extends AnyShape = undefined,
  S extends States = {},
  P extends Parameters = {},
>(
  options: Common<undefined, {}, S, P> & {
    input?: I;
    times?: boolean;
    keep(row: ValueOf<I>, ctx: Context<undefined, {}, S, P>): boolean;
  },
): Declaration;

interface ProcessInput<K, I, O, D extends Sides, S extends States, P extends Parameters> {
  input?: I;
  times?: boolean;
  process(key: ValueOf<K>, row: ValueOf<I>, ctx: Context<ValueOf<O>, D, S, P>): Emitted<ValueOf<O>>;
}

export declare function process<
  K extends AnyShape = undefined,
  I extends AnyShape = undefined,
  O extends AnyShape = undefined,
  D extends Sides = {},
  S extends States = {},
  P extends Parameters = {},
>(
  options: Common<O, D, S, P> &
    Partial<ProcessInput<K, I, O, D, S, P>> & {
      key?: K;
      /** Several inputs, each with its own `process`. */
      inputs?: Record<string, ProcessInput<K, any, O, D, S, P>>;
      timers?: ("event" | "processing")[];
      onTimer?(key: ValueOf<K>, timer: Timer, ctx: Context<ValueOf<O>, D, S, P>): Emitted<ValueOf<O>>;
    },
): Declaration;

export declare function aggregate<
  A extends AnyShape,
  K extends AnyShape = undefined,
  I extends AnyShape = undefined,
  O extends AnyShape = undefined,
  S extends States = {},
  P extends Parameters = {},
>(
  options: Common<O, {}, S, P> & {
    key?: K;
    input?: I;
    times?: boolean;
    accumulator: A;
    version?: number;
    migrations?: Record<number, { from: Shape<any>; migrate: (stored: any) => ValueOf<A> }>;
    /** A new accumulator; without it null where it may be, else zero and empty. */
    create?(): ValueOf<A>;
    /** Changes the accumulator or returns another. */
    add(accumulator: ValueOf<A>, row: ValueOf<I>, ctx: Context<ValueOf<O>, {}, S, P>): ValueOf<A> | void;
    merge?(into: ValueOf<A>, other: ValueOf<A>): ValueOf<A> | void;
    finish(
      accumulator: ValueOf<A>,
      key: ValueOf<K>,
      window: Window,
      ctx: Context<ValueOf<O>, {}, S, P>,
    ): Emitted<ValueOf<O>>;
  },
): Declaration;

export declare function window<
  K extends AnyShape = undefined,
  I extends AnyShape = undefined,
  O extends AnyShape = undefined,
  S extends States = {},
  P extends Parameters = {},
>(
  options: Common<O, {}, S, P> & {
    key?: K;
    input?: I;
    apply(
      key: ValueOf<K>,
      window: Window,
      rows: ValueOf<I>[],
      ctx: Context<ValueOf<O>, {}, S, P>,
    ): Emitted<ValueOf<O>>;
  },
): Declaration;
