"""Keyed state: handles that read all keys of a call at once at their first use, and write what changed at its end.

All methods are about the current key.
"""

from __future__ import annotations

from typing import Any, Generic, Iterator, TypeVar

from . import _columns
from ._boundary import host, operator_state, state, types
from .rows import Schema, schema

K = TypeVar("K")
V = TypeVar("V")

_UNKNOWN: Any = object()


class _Keyed:
    kind = ""

    def __init__(self, name: str, of: Schema) -> None:
        self._name = name
        self._schema = of
        self._keys = 0
        self._key = 0
        self._begin(0)

    def _begin(self, keys: int) -> None:
        raise NotImplementedError

    def _flush(self) -> None:
        raise NotImplementedError


class ValueState(_Keyed, Generic[V]):
    """One value a key."""

    kind = "value"

    def __init__(self, name: str, of: Schema) -> None:
        super().__init__(name, of)
        self._host = state.ValueState.open(name) if state is not host else host.open_value(name)

    def _begin(self, keys: int) -> None:
        self._keys = keys
        self._values: dict[int, Any] = {}
        self._written: dict[int, None] = {}
        self._loaded = False

    def get(self, default: Any = None) -> V:
        """The value, or the default where there is none. Changing it in place changes nothing that lasts: `set` it."""
        if not self._loaded and self._key not in self._values:
            self._load()
        value = self._values.get(self._key)
        return default if value is None else value  # type: ignore[no-any-return]

    def set(self, value: V) -> None:
        """Sets the value."""
        self._values[self._key] = value
        self._written[self._key] = None

    def clear(self) -> None:
        """Removes the value."""
        self._values[self._key] = None
        self._written[self._key] = None

    def take(self, default: Any = None) -> V:
        """The value, which the key has no longer."""
        value = self.get(default)
        self.clear()
        return value

    def _load(self) -> None:
        cells = self._host.read(list(range(self._keys)))
        present = _columns.unpack_bits(cells.present, self._keys)
        if any(present):
            stored = self._schema.read_present(cells.values, present)
            # What the call has written counts.
            self._values = {**dict(enumerate(stored)), **self._values}
        self._loaded = True

    def _flush(self) -> None:
        if self._written:
            keys = list(self._written)
            cells = self._schema.batch_of_present([self._values[key] for key in keys])
            self._host.write(keys, cells)
        self._begin(self._keys)


class ListState(_Keyed, Generic[V]):
    """A list a key. Adding reads nothing."""

    kind = "list"

    def __init__(self, name: str, of: Schema) -> None:
        super().__init__(name, of)
        self._host = state.ListState.open(name) if state is not host else host.open_list(name)

    def _begin(self, keys: int) -> None:
        self._keys = keys
        self._stored: list[list[Any]] | None = None
        self._added: dict[int, list[Any]] = {}
        self._cleared: dict[int, None] = {}

    def get(self) -> list[V]:
        """The items, in the order in which they were added."""
        added = self._added.get(self._key, [])
        if self._key in self._cleared:
            return list(added)
        if self._stored is None:
            self._load()
        return self._stored[self._key] + added  # type: ignore[index]

    def add(self, item: V) -> None:
        """Appends an item."""
        self._added.setdefault(self._key, []).append(item)

    def set(self, items: list[V]) -> None:
        """Puts these items in the place of the list."""
        self._cleared[self._key] = None
        self._added[self._key] = list(items)

    def clear(self) -> None:
        """Empties the list."""
        self.set([])

    def take(self) -> list[V]:
        """The items, which the key has no longer."""
        items = self.get()
        self.clear()
        return items

    def _load(self) -> None:
        runs = self._host.read(list(range(self._keys)))
        items = self._schema.read(runs.items)
        self._stored = [items[start:end] for start, end in zip(runs.offsets, runs.offsets[1:])]

    def _flush(self) -> None:
        if self._cleared:
            self._host.clear(list(self._cleared))
        added = [(key, items) for key, items in self._added.items() if items]
        if added:
            offsets, flat = [0], []
            for _, items in added:
                flat.extend(items)
                offsets.append(len(flat))
            self._host.append([key for key, _ in added], types.Runs(offsets, self._schema.batch(flat)))
        self._begin(self._keys)


class _Map:
    """What is known of one key's map."""

    __slots__ = ("cleared", "entries", "known_to", "written")

    def __init__(self) -> None:
        self.entries: dict[bytes, Any] = {}
        self.written: dict[bytes, Any] = {}
        self.cleared = False
        # Up to which key the host's entries are known: b"" is nothing, None is all.
        self.known_to: bytes | None = b""


class MapState(_Keyed, Generic[K, V]):
    """A map a key, in the order of its keys. Maps of up to 256 entries cost one call of the host for a whole batch; each
    look behind that in a longer one costs a call."""

    kind = "map"

    def __init__(self, name: str, key: Any, of: Schema) -> None:
        super().__init__(name, of)
        self._key_type = key
        self._host = state.MapState.open(name) if state is not host else host.open_map(name)

    def _begin(self, keys: int) -> None:
        self._keys = keys
        self._maps: dict[int, _Map] = {}
        self._loaded = False

    def get(self, map_key: K, default: Any = None) -> V:
        """The value of an entry, or the default."""
        value = self._look(self._encode(map_key))
        return default if value is None else value  # type: ignore[no-any-return]

    def __contains__(self, map_key: K) -> bool:
        return self._look(self._encode(map_key)) is not None

    def put(self, map_key: K, value: V) -> None:
        """Sets an entry."""
        self._map().written[self._encode(map_key)] = value

    def remove(self, map_key: K) -> None:
        """Removes an entry."""
        self._map().written[self._encode(map_key)] = None

    def items(self) -> Iterator[tuple[K, V]]:
        """All entries, in the order of their keys. Reads the whole map."""
        of = self._map()
        if not of.cleared:
            if not self._loaded:
                self._load()
            if of.known_to is not None:
                self._scan([self._key], of.known_to + b"\0", 0xFFFFFFFF)
        entries = {**of.entries, **of.written}
        for map_key in sorted(entries):
            if entries[map_key] is not None:
                yield self._decode(map_key), entries[map_key]

    def clear(self) -> None:
        """Empties the map."""
        of = self._map()
        of.entries.clear()
        of.written.clear()
        of.cleared = True
        of.known_to = None

    def _map(self) -> _Map:
        of = self._maps.get(self._key)
        if of is None:
            of = self._maps[self._key] = _Map()
        return of

    def _look(self, map_key: bytes) -> Any:
        of = self._map()
        if map_key in of.written:
            return of.written[map_key]
        if not self._loaded and not of.cleared:
            self._load()
        if map_key in of.entries:
            return of.entries[map_key]
        if of.known_to is None or (of.known_to and map_key <= of.known_to):
            return None
        cells = self._host.read([self._key], _columns.pack_var([map_key]))
        present = _columns.unpack_bits(cells.present, 1)
        value = self._schema.read_present(cells.values, present)[0]
        of.entries[map_key] = value
        return value

    def _load(self) -> None:
        self._loaded = True
        self._scan(list(range(self._keys)), None, _FIRST)

    def _scan(self, keys: list[int], start: bytes | None, limit: int) -> None:
        found = self._host.scan(keys, start, limit)
        map_keys = _columns.unpack_var(found.map_keys)
        values = self._schema.read(found.values)
        for key, begin, end in zip(keys, found.offsets, found.offsets[1:]):
            of = self._maps.setdefault(key, _Map())
            if of.cleared:
                continue
            of.entries.update(zip(map_keys[begin:end], values[begin:end]))
            of.known_to = map_keys[end - 1] if end - begin == limit else None

    def _flush(self) -> None:
        cleared = [key for key, of in self._maps.items() if of.cleared]
        if cleared:
            self._host.clear(cleared)
        writes = [
            (key, map_key, value) for key, of in self._maps.items() for map_key, value in of.written.items()
        ]
        if writes:
            cells = self._schema.batch_of_present([value for _, _, value in writes])
            map_keys = _columns.pack_var([map_key for _, map_key, _ in writes])
            self._host.write([key for key, _, _ in writes], map_keys, cells)
        self._begin(self._keys)

    def _encode(self, map_key: K) -> bytes:
        """Bytes that are in the order of the keys, as all SDKs have them."""
        if isinstance(map_key, str):
            return map_key.encode()
        if isinstance(map_key, bytes):
            return map_key
        if isinstance(map_key, int):
            bits = 32 if self._key_type.columns[0].type.layout == "int32" else 64
            return (map_key + (1 << bits - 1)).to_bytes(bits // 8, "big")
        raise _columns.MismatchError(f"state `{self._name}`: expected a map key of str, int or bytes, found {map_key!r}")

    def _decode(self, map_key: bytes) -> Any:
        layout = self._key_type.columns[0].type
        if layout.name == "utf8":
            return map_key.decode()
        if layout.name == "binary":
            return map_key
        return int.from_bytes(map_key, "big") - (1 << len(map_key) * 8 - 1)


_FIRST = 256


class OperatorState(Generic[V]):
    """Items of a subtask, in `items`: a list to read and to change. On a change of parallelism they are dealt out anew."""

    kind = "operator"
    redistribution = "split"

    def __init__(self, name: str, of: Schema) -> None:
        self._schema = of
        self._host = operator_state.Items.open(name) if operator_state is not host else host.open_items(name)
        self.items: list[V] = of.read(self._host.read())
        self._written = self._encoded()

    def _encoded(self) -> Any:
        return self._schema.batch(self.items)

    def _begin(self, keys: int) -> None:
        """There is nothing to load."""

    def _flush(self) -> None:
        batch = self._encoded()
        if batch != self._written:
            self._host.replace(batch)
            self._written = batch


class UnionState(OperatorState[V]):
    """Items of a subtask, of which every subtask is given all on a change of parallelism."""

    redistribution = "union"


HANDLES = (ValueState, ListState, MapState, OperatorState, UnionState)


def open_state(name: str, origin: Any, arguments: tuple[Any, ...]) -> Any:
    """The handle that an annotation such as `ValueState[int]` asks for."""
    if origin is MapState:
        return MapState(name, schema(arguments[0]), schema(arguments[1]))
    return origin(name, schema(arguments[0]))
