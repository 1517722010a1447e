"""Values of a column to and from the layouts that cross the boundary: whole columns at a time, in as little Python as
can be."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from typing import Any, Iterable, Sequence

from ._boundary import types
from .values import ColumnSpec

# The eight bits of each byte, the least significant first.
_BITS = [[bool(byte >> bit & 1) for bit in range(8)] for byte in range(256)]


class MismatchError(Exception):
    """Values do not fit their column."""


def unpack_bits(data: bytes, rows: int) -> list[bool]:
    """One bool a row."""
    if len(data) * 8 < rows:
        raise MismatchError(f"expected bits for {rows} rows, found {len(data)} bytes")
    bits = list(chain.from_iterable(map(_BITS.__getitem__, data)))
    return bits if len(bits) == rows else bits[:rows]


def pack_bits(bits: Sequence[Any]) -> bytes:
    """One bit a row; what is true is set."""
    rows = len(bits)
    number = int("".join(["1" if bit else "0" for bit in reversed(bits)]) or "0", 2)
    return number.to_bytes((rows + 7) // 8, "little")


def unpack_var(values: Any) -> list[bytes]:
    """The bytes of each row."""
    data, offsets = values.bytes, values.offsets
    return [data[start:end] for start, end in zip(offsets, offsets[1:])]


def pack_var(texts: Iterable[bytes]) -> Any:
    """Offsets and one run of bytes."""
    texts = list(texts)
    return types.VarValues(offsets=list(accumulate(map(len, texts), initial=0)), bytes=b"".join(texts))


def decode(column: Any, spec: ColumnSpec, rows: int) -> list[Any]:
    """The values of a column, None where it is null."""
    layout = type(column.values).__name__.removeprefix("Values_").lower()
    if layout != spec.type.layout:
        raise MismatchError(f"column `{spec.name}`: expected {spec.type.layout} values, found {layout}")
    values = _decode_values(column.values.value, spec, rows)
    if len(values) != rows:
        raise MismatchError(f"column `{spec.name}`: expected {rows} rows, found {len(values)}")
    load = spec.type.load
    if column.validity is None:
        return values if load is None else [load(value) for value in values]
    valid = unpack_bits(column.validity, rows)
    if load is None:
        return [value if is_valid else None for value, is_valid in zip(values, valid)]
    return [load(value) if is_valid else None for value, is_valid in zip(values, valid)]


def _decode_values(values: Any, spec: ColumnSpec, rows: int) -> list[Any]:
    match spec.type.name:
        case "boolean":
            return unpack_bits(values, rows)
        case "utf8":
            texts = unpack_var(values)
            return [str(text, "utf-8") for text in texts]
        case "binary":
            return unpack_var(values)
    return values  # type: ignore[no-any-return]


def encode(values: list[Any], spec: ColumnSpec) -> Any:
    """A column of values, of which those of a nullable column may be None."""
    validity = None
    if spec.nullable and None in values:
        present = [value is not None for value in values]
        validity = pack_bits(present)
    try:
        if spec.type.store is not None:
            store = spec.type.store
            stored = [None if value is None else store(value) for value in values]
        else:
            stored = values
        packed = _ENCODERS[spec.type.name](stored if validity is None else _filled(stored, spec))
    except (TypeError, AttributeError, OverflowError, UnicodeEncodeError) as error:
        raise _explained(values, spec, error) from None
    return types.Column(validity=validity, values=packed, children=[])


def _filled(values: list[Any], spec: ColumnSpec) -> list[Any]:
    zero: Any = "" if spec.type.name == "utf8" else b"" if spec.type.name == "binary" else 0
    if spec.type.name == "boolean":
        zero = False
    return [zero if value is None else value for value in values]


def _encode_bits(values: list[Any]) -> Any:
    if not all(value is True or value is False for value in values):
        raise TypeError
    return types.Values_Bits(pack_bits(values))


def _encode_utf8(values: list[Any]) -> Any:
    return types.Values_Var(pack_var([str.encode(value) for value in values]))


def _encode_binary(values: list[Any]) -> Any:
    return types.Values_Var(pack_var([bytes(memoryview(value)) for value in values]))


# An array checks types and ranges, in C.
_ENCODERS = {
    "boolean": _encode_bits,
    "int32": lambda values: types.Values_Int32(array("i", values).tolist()),
    "int64": lambda values: types.Values_Int64(array("q", values).tolist()),
    "float32": lambda values: types.Values_Float32(array("f", values).tolist()),
    "float64": lambda values: types.Values_Float64(array("d", values).tolist()),
    "timestamp": lambda values: types.Values_Int64(array("q", values).tolist()),
    "date": lambda values: types.Values_Int32(array("i", values).tolist()),
    "utf8": _encode_utf8,
    "binary": _encode_binary,
}


def _explained(values: list[Any], spec: ColumnSpec, error: Exception) -> MismatchError:
    """Names the first value that does not fit."""
    single = ColumnSpec(spec.name, spec.type, False)
    for row, value in enumerate(values):
        if value is None and spec.nullable:
            continue
        try:
            store = spec.type.store
            _ENCODERS[spec.type.name]([value if store is None else store(value)])
        except (TypeError, AttributeError, OverflowError, UnicodeEncodeError) as one:
            detail = f" ({one})" if str(one) and single.type.store is not None else ""
            may = " or None" if spec.nullable else ""
            found = f"{value!r:.80} of type {type(value).__name__}"
            return MismatchError(f"column `{spec.name}`, row {row}: expected {spec.type.expected}{may}, found {found}{detail}")
    return MismatchError(f"column `{spec.name}`: {error}")
