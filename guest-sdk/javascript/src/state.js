// Keyed state: handles that read all keys of a call at once at their first use, and write what changed at its end. All
// methods are about the current key.

import { isBytes, MismatchError, packVar, unpackVar } from "./columns.js";
import { host } from "./host.js";
import { batchOf, cellsOf, readCells, readRows } from "./rows.js";
import { DeclarationError, isType, Schema } from "./types.js";

class Declared {
  constructor(kind, handle, value, options = {}) {
    this.kind = kind;
    this.handle = handle;
    this.schema = new Schema(value);
    this.version = options.version ?? 1;
    this.migrations = options.migrations ?? {};
    this.mapKey = options.mapKey;
    this.redistribution = options.redistribution;
  }

  describe(name) {
    const { kind, version, redistribution } = this;
    const from = Object.keys(this.migrations).map(Number);
    return {
      name,
      kind,
      version,
      columns: this.schema.describe(),
      ...(from.length > 0 && { "migrates-from": from }),
      ...(redistribution && { redistribution }),
    };
  }

  get isKeyed() {
    return this.kind !== "operator";
  }

  open(name) {
    return new this.handle(name, this);
  }
}

export function isState(value) {
  return value instanceof Declared;
}

// A value a key.
export function valueState(value, options) {
  return new Declared("value", ValueState, value, options);
}

// A list a key.
export function listState(item, options) {
  return new Declared("list", ListState, item, options);
}

// A map a key, in the order of its keys.
export function mapState(key, value, options) {
  if (!isType(key) || !(key.name in MAP_KEYS) || key.isNullable) {
    throw new DeclarationError(`the key of a map state is one of t.${Object.keys(MAP_KEYS).join(", t.")}`);
  }
  return new Declared("map", MapState, value, { ...options, mapKey: key.name });
}

// Items of a subtask, dealt out anew on a change of parallelism.
export function operatorState(item, options) {
  return new Declared("operator", OperatorState, item, { ...options, redistribution: "split" });
}

// Items of a subtask, of which every subtask is given all on a change of parallelism.
export function unionState(item, options) {
  return new Declared("operator", OperatorState, item, { ...options, redistribution: "union" });
}

const positions = (count) => Uint32Array.from({ length: count }, (_, at) => at);

class Keyed {
  constructor(name, declared, handle) {
    this._name = name;
    this._schema = declared.schema;
    this._host = handle;
    this._key = 0;
    this._begin(0);
  }
}

class ValueState extends Keyed {
  constructor(name, declared) {
    super(name, declared, host().openValue(name));
  }

  _begin(keys) {
    this._keys = keys;
    this._values = new Map();
    this._written = new Set();
    this._loaded = false;
  }

  // The value, or what is given for none. Changing it in place changes nothing that lasts: `set` it.
  get(otherwise) {
    if (!this._loaded && !this._values.has(this._key)) this._load();
    return this._values.get(this._key) ?? otherwise;
  }

  set(value) {
    this._values.set(this._key, value);
    this._written.add(this._key);
  }

  clear() {
    this.set(undefined);
  }

  take(otherwise) {
    const value = this.get(otherwise);
    this.clear();
    return value;
  }

  _load() {
    readCells(this._schema, this._host.read(positions(this._keys))).forEach((value, key) => {
      // What the call has written counts.
      if (!this._values.has(key)) this._values.set(key, value);
    });
    this._loaded = true;
  }

  _flush() {
    if (this._written.size > 0) {
      const keys = [...this._written];
      this._host.write(Uint32Array.from(keys), cellsOf(this._schema, keys.map((key) => this._values.get(key))));
    }
    this._begin(this._keys);
  }
}

class ListState extends Keyed {
  constructor(name, declared) {
    super(name, declared, host().openList(name));
  }

  _begin(keys) {
    this._keys = keys;
    this._stored = undefined;
    this._added = new Map();
    this._cleared = new Set();
  }

  // The items, in the order in which they were added.
  get() {
    const added = this._added.get(this._key) ?? [];
    if (this._cleared.has(this._key)) return [...added];
    if (this._stored === undefined) this._load();
    return [...this._stored[this._key], ...added];
  }

  // Appends an item, and reads nothing.
  add(item) {
    const added = this._added.get(this._key);
    if (added === undefined) this._added.set(this._key, [item]);
    else added.push(item);
  }

  set(items) {
    this._cleared.add(this._key);
    this._added.set(this._key, [...items]);
  }

  clear() {
    this.set([]);
  }

  take() {
    const items = this.get();
    this.clear();
    return items;
  }

  _load() {
    const { offsets, items } = this._host.read(positions(this._keys));
    const rows = readRows(this._schema, items);
    this._stored = Array.from({ length: this._keys }, (_, key) => rows.slice(offsets[key], offsets[key + 1]));
  }

  _flush() {
    if (this._cleared.size > 0) this._host.clear(Uint32Array.from(this._cleared));
    const added = [...this._added].filter(([, items]) => items.length > 0);
    if (added.length > 0) {
      const offsets = new Uint32Array(added.length + 1);
      added.forEach(([, items], at) => (offsets[at + 1] = offsets[at] + items.length));
      const items = batchOf(this._schema, added.flatMap(([, items]) => items));
      this._host.append(Uint32Array.from(added, ([key]) => key), { offsets, items });
    }
    this._begin(this._keys);
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

// Bytes that are in the order of the keys, as all SDKs have them.
const MAP_KEYS = {
  utf8: { fits: (key) => typeof key === "string", pack: (key) => encoder.encode(key), unpack: (bytes) => decoder.decode(bytes) },
  binary: { fits: isBytes, pack: (key) => key, unpack: (bytes) => bytes },
  int32: { fits: Number.isSafeInteger, pack: (key) => packInteger(BigInt(key), 32), unpack: (bytes) => Number(unpackInteger(bytes)) },
  int64: { fits: Number.isSafeInteger, pack: (key) => packInteger(BigInt(key), 64), unpack: (bytes) => Number(unpackInteger(bytes)) },
  bigint: { fits: (key) => typeof key === "bigint", pack: (key) => packInteger(key, 64), unpack: unpackInteger },
};

function packInteger(key, bits) {
  const shifted = BigInt.asUintN(bits, key + (1n << BigInt(bits - 1)));
  return Uint8Array.from({ length: bits / 8 }, (_, at) => Number((shifted >> BigInt(bits - 8 * (at + 1))) & 0xffn));
}

function unpackInteger(bytes) {
  const shifted = bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
  return shifted - (1n << BigInt(bytes.length * 8 - 1));
}

// Bytes as a text that sorts as they do, so that they can be the key of a Map.
const asText = (bytes) => String.fromCharCode(...bytes);
const asBytes = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));

const FIRST = 256;

class MapState extends Keyed {
  constructor(name, declared) {
    super(name, declared, host().openMap(name));
    this._codec = MAP_KEYS[declared.mapKey];
  }

  _begin(keys) {
    this._keys = keys;
    this._maps = new Map();
    this._loaded = false;
  }

  // The value of an entry, or what is given for none. Maps of up to 256 entries cost one call of the host for a whole
  // batch; each look behind that in a longer one costs a call.
  get(mapKey, otherwise) {
    return this._look(this._pack(mapKey)) ?? otherwise;
  }

  has(mapKey) {
    return this._look(this._pack(mapKey)) !== undefined;
  }

  set(mapKey, value) {
    this._map().written.set(this._pack(mapKey), value);
  }

  delete(mapKey) {
    this._map().written.set(this._pack(mapKey), undefined);
  }

  // All entries, in the order of their keys. Reads the whole map.
  entries() {
    const map = this._map();
    if (!map.cleared) {
      if (!this._loaded) this._load();
      if (map.knownTo !== undefined) {
        this._scan(Uint32Array.of(this._key), asBytes(`${map.knownTo}\0`), 0xffffffff);
      }
    }
    const entries = [...new Map([...map.stored, ...map.written])].filter(([, value]) => value !== undefined);
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return entries.map(([key, value]) => [this._codec.unpack(asBytes(key)), value]);
  }

  clear() {
    this._maps.set(this._key, { stored: new Map(), written: new Map(), cleared: true, knownTo: undefined });
  }

  _pack(mapKey) {
    if (!this._codec.fits(mapKey)) {
      throw new MismatchError(`state \`${this._name}\`: ${String(mapKey)} is no key of this map`);
    }
    return asText(this._codec.pack(mapKey));
  }

  // What is known of the current key's map: up to which key, or undefined for all of it.
  _map(key = this._key) {
    let map = this._maps.get(key);
    if (map === undefined) {
      map = { stored: new Map(), written: new Map(), cleared: false, knownTo: "" };
      this._maps.set(key, map);
    }
    return map;
  }

  _look(mapKey) {
    const map = this._map();
    if (map.written.has(mapKey)) return map.written.get(mapKey);
    if (!this._loaded && !map.cleared) this._load();
    if (map.stored.has(mapKey)) return map.stored.get(mapKey);
    if (map.knownTo === undefined || (map.knownTo !== "" && mapKey <= map.knownTo)) return undefined;
    const cells = this._host.read(Uint32Array.of(this._key), packVar([asBytes(mapKey)]));
    const [value] = readCells(this._schema, cells);
    map.stored.set(mapKey, value);
    return value;
  }

  _load() {
    this._loaded = true;
    this._scan(positions(this._keys), undefined, FIRST);
  }

  _scan(keys, start, limit) {
    const { offsets, mapKeys, values } = this._host.scan(keys, start, limit);
    const names = unpackVar(mapKeys).map(asText);
    const rows = readRows(this._schema, values);
    keys.forEach((key, at) => {
      const map = this._map(key);
      if (map.cleared) return;
      const [begin, end] = [offsets[at], offsets[at + 1]];
      for (let entry = begin; entry < end; entry++) map.stored.set(names[entry], rows[entry]);
      map.knownTo = end - begin === limit ? names[end - 1] : undefined;
    });
  }

  _flush() {
    const cleared = [...this._maps].filter(([, map]) => map.cleared).map(([key]) => key);
    if (cleared.length > 0) this._host.clear(Uint32Array.from(cleared));
    const writes = [...this._maps].flatMap(([key, map]) => [...map.written].map(([name, value]) => ({ key, name, value })));
    if (writes.length > 0) {
      const keys = Uint32Array.from(writes, ({ key }) => key);
      const names = packVar(writes.map(({ name }) => asBytes(name)));
      this._host.write(keys, names, cellsOf(this._schema, writes.map(({ value }) => value)));
    }
    this._begin(this._keys);
  }
}

class OperatorState {
  constructor(name, declared) {
    this._schema = declared.schema;
    this._host = host().openItems(name);
    // The items: an array to read and to change.
    this.items = readRows(this._schema, this._host.read());
    this._seen = this._shown();
  }

  _shown() {
    return JSON.stringify(this.items, (_, value) => (typeof value === "bigint" ? `${value}n` : value));
  }

  _begin() {}

  _flush() {
    const shown = this._shown();
    if (shown === this._seen) return;
    this._seen = shown;
    this._host.replace(batchOf(this._schema, this.items));
  }
}
