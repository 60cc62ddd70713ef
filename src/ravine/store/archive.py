"""JSON and arrays in one file, read without trust: nothing is run, and every value is checked.

The file is an uncompressed zip archive as `numpy.savez` writes it: `meta` holds UTF-8 JSON, every other
member an array without pickled objects.
"""

from __future__ import annotations

import io
import json
import math
import os
import reprlib
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidModelError

MAX_REASON = 300  # characters of an error message that may repeat what is in the file

Array = npt.NDArray[Any]


@contextmanager
def refuse_errors(what: str, advice: str) -> Iterator[None]:
    """Turn any error while a file or a text is read into an `InvalidModelError` of one sentence."""
    try:
        yield
    except Exception as error:
        reason = textwrap.shorten(str(error) or type(error).__name__, MAX_REASON)
        raise InvalidModelError(f"{what}: {reason}; {advice}") from error


def require(holds: Any, what: str, expected: str, got: Any) -> None:
    """Refuse a file with one sentence unless a condition holds.

    A string `got` is shown unchanged, so values from the file have to go through `shorten_value` first.
    """
    if not holds:
        got = got if isinstance(got, str) else shorten_value(got)
        raise InvalidModelError(f"{what} has to be {expected}, got {got}")


def shorten_value(value: Any) -> str:
    """Return a value as short text on one line."""
    return reprlib.repr(value.tolist() if isinstance(value, np.ndarray) else value)


# --- writing ---


def jsonable(value: Any) -> Any:
    """Return a value for JSON: numbers that are not finite as texts, functions and random generators as null.

    >>> jsonable({"a": np.array([1.0, np.inf]), "b": print})
    {'a': [1.0, 'inf'], 'b': None}
    """
    if isinstance(value, Mapping):
        return {str(name): jsonable(x) for name, x in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [jsonable(x) for x in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None


def fields_to_json(record: Any) -> dict[str, Any]:
    """Return the numbers and texts among the fields of a dataclass, as `Stored.fields_of` reads them."""
    values = {field.name: jsonable(getattr(record, field.name)) for field in fields(record)}
    return {name: value for name, value in values.items() if isinstance(value, bool | int | float | str)}


def write_archive(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return JSON and arrays as the content of a file."""
    text = json.dumps(meta, allow_nan=False).encode()
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.frombuffer(text, dtype=np.uint8), **arrays)
    return buffer.getvalue()


# --- reading ---


def read_archive(file: BinaryIO) -> Stored:
    """Return what `write_archive` wrote; takes about twice the memory of the arrays, plus the JSON."""
    # Of another kind of file no more is read: it may be endless, and numpy would take it for a pickle.
    require(file.read(2) == b"PK", "the file", "one that ravine wrote", "another one")
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        # Members are not compressed, so that none of them can unpack to more than there is in the file.
        declared = sum(member.file_size for member in archive.zip.infolist())
        require(declared <= size, "the size of all members", f"at most {size} bytes", declared)
        arrays = {name: _native(np.asarray(archive[name])) for name in archive.files}
    require("meta" in arrays, "meta", "an array of the file", "no such array")
    facts = json.loads(arrays.pop("meta").tobytes())
    require(isinstance(facts, dict), "meta", "an object of JSON", shorten_value(facts))
    return Stored(facts, arrays)


def _native(array: Array) -> Array:
    """Return an array by rows and in the byte order of this machine, wherever the file was written."""
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=False)


def array_of_lists(what: str, values: Any) -> Array:
    """Return nested lists of numbers as an array: a list of whole numbers as int64, others as float64.

    >>> [array_of_lists("x", values).dtype.name for values in ([1, 2], [1.0, 2], [[1, 2]])]
    ['int64', 'float64', 'float64']
    """
    is_whole = isinstance(values, list) and bool(values) and all(type(x) is int for x in values)
    try:
        return np.array(values, dtype=np.int64 if is_whole else np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InvalidModelError(f"{what} has to be lists of numbers, got {shorten_value(values)}") from None


def _describe(array: Array) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


@dataclass
class Stored:
    """JSON values and arrays of an untrusted file, each of which is read with a check of its type.

    What nobody reads is ignored, so that a later edition can add values and arrays. `within` is the path of a
    nested JSON object, for messages.

    >>> stored = Stored({"n": 3}, {"weight": np.array([1.0, 2.0])})
    >>> stored.integer("n", low=1), stored.floats("weight", 2).tolist()
    (3, [1.0, 2.0])
    """

    facts: dict[str, Any]
    arrays: dict[str, Array]
    within: str = ""

    def fact(self, name: str) -> Any:
        """Return any JSON value."""
        require(name in self.facts, self.within + name, "in the JSON of the file", "no such value")
        return self.facts[name]

    def _check(self, name: str, expected: str, holds: Callable[[Any], bool]) -> Any:
        value = self.fact(name)
        if not holds(value):
            require(False, self.within + name, expected, shorten_value(value))
        return value

    def array(self, name: str) -> Array:
        """Return any array."""
        require(name in self.arrays, self.within + name, "an array of the file", "no such array")
        return self.arrays[name]

    def inner(self, name: str) -> Stored:
        """Return a nested JSON object."""
        facts = self._check(name, "an object of JSON", lambda value: isinstance(value, dict))
        return Stored(facts, {}, f"{self.within}{name}.")

    def objects(self, name: str) -> list[Stored]:
        """Return a list of nested JSON objects."""
        found = self._list(name, dict, "a list of objects of JSON")
        return [Stored(facts, {}, f"{self.within}{name}.") for facts in found]

    def _list(self, name: str, kind: type, expected: str) -> list[Any]:
        def holds(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(item, kind) for item in value)

        return list(self._check(name, expected, holds))

    def lists(self, *names: str) -> Stored:
        """Return some values, nested lists of numbers, as arrays."""
        arrays = {name: array_of_lists(self.within + name, self.fact(name)) for name in names}
        return Stored({}, arrays, self.within)

    def integer(self, name: str, *, low: int = 0, high: int = sys.maxsize) -> int:
        """Return an integer from `low` to `high`."""
        expected = f"a whole number of at least {low} and at most {high}"
        return int(self._check(name, expected, lambda value: type(value) is int and low <= value <= high))

    def number(self, name: str, *, low: float = -sys.float_info.max) -> float:
        """Return a finite number of at least `low`."""
        expected = f"a number of at least {low:g}"
        return float(self._check(name, expected, lambda value: _is_number(value) and value >= low))

    def figure(self, name: str) -> float:
        """Return a number that is only displayed, and so may be "nan", "inf" or "-inf"."""
        other = ("nan", "inf", "-inf")
        expected = f"a number or one of {', '.join(other)}"
        return float(self._check(name, expected, lambda value: _is_number(value) or value in other))

    def boolean(self, name: str) -> bool:
        """Return true or false."""
        return bool(self._check(name, "true or false", lambda value: isinstance(value, bool)))

    def text(self, name: str, among: list[str] | None = None) -> str:
        """Return a text, or one of the given ones."""
        expected = "a text" if among is None else f"one of {', '.join(among)}"
        return str(
            self._check(
                name, expected, lambda value: isinstance(value, str) and (among is None or value in among)
            )
        )

    def texts(self, name: str, n: int | None = None) -> list[str]:
        """Return a list of strings: n of them, if n is given."""
        values = self._list(name, str, "a list of texts")
        require(n in (None, len(values)), self.within + name, f"a list of {n} texts", f"{len(values)}")
        return values

    def texts_or_none(self, name: str, n: int | None = None) -> list[str] | None:
        """Return a list of strings, or None for null."""
        return None if self.fact(name) is None else self.texts(name, n)

    def fields_of(self, make: type) -> dict[str, Any]:
        """Return the numbers and texts that a dataclass has as fields, by name."""
        read: dict[Any, Callable[[str], Any]] = {
            "float": self.figure,
            "int": self.integer,
            "bool": self.boolean,
            "str": self.text,
        }
        return {field.name: read[field.type](field.name) for field in fields(make) if field.type in read}

    def floats(
        self, name: str, *shape: int | None, low: float = -math.inf, high: float = math.inf
    ) -> FloatArray:
        """Return finite numbers (float64) from low to high; None in the shape stands for any length."""
        array = self._read_shaped(name, np.float64, shape)
        require(np.isfinite(array).all(), self.within + name, "finite", "NaN or infinity")
        return self._in_range(name, array, low, high)

    def figures(self, name: str, n: int) -> FloatArray:
        """Return numbers (float64) that may be NaN or infinite."""
        return self._read_shaped(name, np.float64, (n,))

    def integers(self, name: str, *shape: int | None, low: int, high: int) -> IntArray:
        """Return integers (int64) from low to high; None in the shape stands for any length."""
        return self._in_range(name, self._read_shaped(name, np.int64, shape), low, high)

    def _read_shaped(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> Array:
        array = self.array(name)
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        holds = array.dtype == dtype and array.ndim == len(shape)
        holds = holds and all(a in (None, b) for a, b in zip(shape, array.shape, strict=True))
        require(holds, self.within + name, f"{np.dtype(dtype)} of shape ({expected})", _describe(array))
        return array

    def _in_range(self, name: str, array: Array, low: float, high: float) -> Array:
        if array.size:
            smallest, largest = array.min(), array.max()
            require(smallest >= low, self.within + name, f"at least {low:g}", f"{smallest:g}")
            require(largest <= high, self.within + name, f"at most {high:g}", f"{largest:g}")
        return array
