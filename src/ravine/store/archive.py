"""JSON and arrays in one file, read without trust: nothing is run, and nothing grows larger than the file.

The file is an uncompressed zip archive as `numpy.savez` writes it: `meta` holds UTF-8 JSON, every other
member an array without pickled objects. So no member can declare more bytes than the file has.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import os
import reprlib
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ravine._validate import FloatArray, IntArray
from ravine.exceptions import InvalidModelError

MAX_MEMBERS = 64  # a model has about 30; zipfile allocates 1 kB for each member before any can be checked
JSON_BYTES = 4 << 20  # parsed JSON takes up to 30 times the memory; 4 MB hold 10 000 splits or 100 000 names
ZIP = b"PK\x03\x04"  # the first bytes of a zip archive
ENTRY = b"PK\x01\x02"  # signature of each member's entry in the directory of a zip archive
KINDS = "biufU"  # numpy's codes of numbers and text, the only types that are accepted

Array = npt.NDArray[Any]


def require(holds: Any, what: str, expected: str, got: Any) -> None:
    """Refuse a file with one sentence unless a condition holds.

    A string `got` is shown unchanged, so values from the file have to go through `shown` first.
    """
    if not holds:
        got = got if isinstance(got, str) else shown(got)
        raise InvalidModelError(f"{what} has to be {expected}, got {got}")


def shown(value: Any) -> str:
    """Return a value as short text on one line."""
    return reprlib.repr(value.tolist() if isinstance(value, np.ndarray) else value)


def write_archive(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
    """Return JSON and arrays as the content of a file; numbers are stored in little-endian order."""
    text = json.dumps(meta, allow_nan=False).encode()
    members: dict[str, Any] = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    members = {name: array.astype(array.dtype.newbyteorder("<")) for name, array in members.items()}
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.frombuffer(text, dtype=np.uint8), **members)
    return buffer.getvalue()


def checksum(meta: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Return a hash of JSON and arrays, the same after they were written and read.

    The checksums of the members of a zip archive are not enough: some of its bytes have none, and a tool
    that edits a member writes them anew.

    >>> checksum({"a": 1, "b": 0.1}, {}) == checksum({"b": 0.1, "a": 1}, {}) != checksum({"a": 1}, {})
    True
    """
    found = hashlib.blake2b(json.dumps(meta, sort_keys=True).encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        found.update(f"{name} {array.dtype.str[1:]} {array.shape} ".encode())
        found.update(array.astype(array.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()


def read_if_archive(path: str | os.PathLike[str]) -> bytes | None:
    """Return the content of a file that begins like an archive; others are not read, and give None."""
    with open(path, "rb") as file:
        first = file.read(len(ZIP)) if os.path.isfile(path) else b""
        return first + file.read() if first == ZIP else None


def read_archive(content: bytes, json_bytes: int | None = None) -> Stored:
    """Return what `write_archive` wrote; takes about twice the memory of the content, plus the JSON."""
    n = content.count(ENTRY)
    require(n <= MAX_MEMBERS, "the file", f"an archive of at most {MAX_MEMBERS} members", f"{n}")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        _check_members(members, len(content))
        arrays = {_name(member): _read_array(_name(member), archive.read(member)) for member in members}
    require("meta" in arrays, "meta", "an array of the file", "no such array")
    meta = arrays.pop("meta")
    require(meta.dtype == np.uint8 and meta.ndim == 1, "meta", "an array of bytes", _described(meta))
    return Stored(_read_json(meta.tobytes(), json_bytes or JSON_BYTES), arrays)


def _name(member: zipfile.ZipInfo) -> str:
    return member.filename.removesuffix(".npy")


def _check_members(members: list[zipfile.ZipInfo], size: int) -> None:
    """Check what the archive declares before any member is read."""
    names = [_name(member) for member in members]
    require(len(set(names)) == len(names), "the file", "an archive of members with different names", names)
    for member in members:
        stored = member.compress_type == zipfile.ZIP_STORED and member.file_size == member.compress_size
        declared = f"{member.compress_size} bytes that declare {member.file_size}"
        require(stored, f"the member {shown(_name(member))}", "stored without compression", declared)
    total = sum(member.file_size for member in members)
    require(total <= size, "the size of all members", f"at most {size} bytes, that of the file", f"{total}")


def _read_array(name: str, content: bytes) -> Array:
    """Return a member as an array, if its header declares exactly the bytes that follow."""
    what = f"the member {shown(name)}"
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    require(version == (1, 0), what, "in version 1.0 of numpy's format", version)
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    require(dtype.kind in KINDS and dtype.itemsize > 0, what, "an array of numbers or text", str(dtype))
    left = len(content) - stream.tell()
    whole = min(shape, default=0) >= 0 and math.prod(shape) * dtype.itemsize == left
    require(whole, what, f"of {left} bytes, as many as follow its header", f"{dtype} of shape {shape}")
    array: Array = np.ndarray(shape, dtype, content, stream.tell(), order="F" if is_fortran else "C")
    return array.astype(dtype.newbyteorder("="), order="C")


def _read_json(content: bytes, most: int) -> dict[str, Any]:
    require(len(content) <= most, "meta", f"of at most {most} bytes", f"{len(content)}")
    expected = "finite, or a string"
    refuse = functools.partial(require, False, "a number in JSON", expected)  # NaN and Infinity are not JSON
    meta = json.loads(content.decode(), parse_constant=refuse)
    require(isinstance(meta, dict), "meta", "an object of JSON", shown(meta))
    return dict(meta)


def _described(array: Array) -> str:
    return f"{array.dtype} of shape {array.shape}"


@dataclass
class Stored:
    """JSON values and arrays of an untrusted file: each is taken out once, after a check of its type.

    `finish` refuses what is left at the end. `within` is the path of a nested JSON object, for messages.

    >>> stored = Stored({"n": 3}, {"weight": np.array([1.0, 2.0])})
    >>> stored.integer("n", low=1), stored.floats("weight", 2).tolist()
    (3, [1.0, 2.0])
    >>> stored.finish()
    """

    facts: dict[str, Any]
    arrays: dict[str, Array]
    within: str = ""

    def fact(self, name: str) -> Any:
        """Take any JSON value."""
        require(name in self.facts, self.within + name, "in the JSON of the file", "no such value")
        return self.facts.pop(name)

    def _checked(self, name: str, expected: str, holds: Callable[[Any], bool]) -> Any:
        value = self.fact(name)
        require(holds(value), self.within + name, expected, shown(value))
        return value

    def array(self, name: str) -> Array:
        """Take any array."""
        require(name in self.arrays, name, "an array of the file", "no such array")
        return self.arrays.pop(name)

    def inner(self, name: str) -> Stored:
        """Take a nested JSON object."""
        facts = self._checked(name, "an object of JSON", lambda value: isinstance(value, dict))
        return Stored(dict(facts), {}, f"{self.within}{name}.")

    def objects(self, name: str) -> list[Stored]:
        """Take a list of nested JSON objects."""
        found = self._list(name, dict, "a list of objects of JSON")
        return [Stored(dict(facts), {}, f"{self.within}{name}.") for facts in found]

    def _list(self, name: str, kind: type, expected: str) -> list[Any]:
        def holds(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(item, kind) for item in value)

        return list(self._checked(name, expected, holds))

    def integer(self, name: str, *, low: int) -> int:
        """Take an integer of at least `low`."""
        expected = f"a whole number of at least {low}"
        return int(self._checked(name, expected, lambda value: type(value) is int and value >= low))

    def number(self, name: str, *, low: float) -> float:
        """Take a finite number of at least `low`."""
        kinds, high = (int, float), sys.float_info.max
        expected = f"a number of at least {low:g}"
        return float(
            self._checked(name, expected, lambda value: type(value) in kinds and low <= value <= high)
        )

    def boolean(self, name: str) -> bool:
        """Take true or false."""
        return bool(self._checked(name, "true or false", lambda value: isinstance(value, bool)))

    def text(self, name: str, among: list[str]) -> str:
        """Take one of the given strings."""
        expected = f"one of {', '.join(among)}"
        return str(self._checked(name, expected, lambda value: isinstance(value, str) and value in among))

    def texts(self, name: str, n: int | None = None) -> list[str]:
        """Take a list of strings: n of them, if n is given."""
        values = self._list(name, str, "a list of texts")
        require(n in (None, len(values)), self.within + name, f"a list of {n} texts", f"{len(values)}")
        return values

    def texts_or_none(self, name: str, n: int | None = None) -> list[str] | None:
        """Take a list of strings, or null."""
        return self.fact(name) if self.facts.get(name, "") is None else self.texts(name, n)

    def floats(
        self, name: str, *shape: int | None, low: float = -math.inf, high: float = math.inf
    ) -> FloatArray:
        """Take finite numbers (float64) from low to high; None in the shape stands for any length."""
        array = self._shaped(name, np.float64, shape)
        require(np.isfinite(array).all(), name, "finite", "NaN or infinity")
        return _check_range(name, array, low, high)

    def figures(self, name: str, n: int) -> FloatArray:
        """Take numbers (float64) that are only displayed, and so may be NaN or infinite."""
        return self._shaped(name, np.float64, (n,))

    def integers(self, name: str, *shape: int | None, low: int, high: int) -> IntArray:
        """Take integers (int64) from low to high; None in the shape stands for any length."""
        return _check_range(name, self._shaped(name, np.int64, shape), low, high)

    def _shaped(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> Array:
        array = self.array(name)
        expected = ", ".join("any" if length is None else str(length) for length in shape)
        holds = array.dtype == dtype and array.ndim == len(shape)
        holds = holds and all(a in (None, b) for a, b in zip(shape, array.shape, strict=True))
        require(holds, name, f"{np.dtype(dtype)} of shape ({expected})", _described(array))
        return array

    def finish(self) -> None:
        """Refuse values and arrays that were not taken."""
        left = sorted([*self.facts, *self.arrays])
        require(not left, self.within.rstrip(".") or "the file", "without further members", left)


def _check_range(name: str, array: Array, low: float, high: float) -> Array:
    if array.size:
        smallest, largest = array.min(), array.max()
        require(smallest >= low, name, f"at least {low:g}", f"{smallest:g}")
        require(largest <= high, name, f"at most {high:g}", f"{largest:g}")
    return array
