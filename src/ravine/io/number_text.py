"""How numbers are written in text: decimal commas, thousands separators, units, true and false."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ravine._validate import FloatArray
from ravine.io.source import TableError, is_missing

SPACES = "' \u00a0\u202f"  # separate thousands besides the point or the comma: 1'234 or 1 234
NUMBER = {  # digits, in groups of three or not, and what follows the decimal sign
    ".": re.compile(rf"[+-]?\d{{1,3}}(?:([,{SPACES}])\d{{3}})(?:\1\d{{3}})*(?:\.\d*)?", re.ASCII),
    ",": re.compile(
        rf"[+-]?(?:\d{{1,3}}(?:([.{SPACES}])\d{{3}})(?:\1\d{{3}})*|\d+)?(?:,\d*)?(?:[eE][+-]?\d+)?", re.ASCII
    ),
}
BOOLEANS = {"true": 1.0, "false": 0.0}
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})( .*)?"
)


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    `decimal` is "." or ","; the other one may separate thousands. `unit` is a percent or currency sign that
    every number has, and that is dropped: 76.7% is 76.7. A `boolean` column has true and false, 1 and 0.

    >>> NumberFormat().parse("1,234.5"), NumberFormat(",").parse("1.234,5")
    (1234.5, 1234.5)
    >>> NumberFormat(unit="$").parse("-$5"), NumberFormat(boolean=True).parse("True")
    (-5.0, 1.0)
    """

    decimal: str = "."
    unit: str = ""
    boolean: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether these are numbers as programs write them."""
        return self == NumberFormat()

    def parse(self, text: str | None) -> float | None:
        """Return a field as a number, NaN if it is missing, None if it is neither."""
        if text is None or is_missing(text):
            return np.nan
        if self.boolean:
            return BOOLEANS.get(text.strip().lower())
        if self.unit:
            if text.count(self.unit) != 1:
                return None
            text = text.replace(self.unit, "")
        return _number(text.strip(), self.decimal)


def _number(text: str, decimal: str) -> float | None:
    if decimal == ".":
        try:
            return None if "_" in text else float(text)  # Python reads 1_000 as a number, others do not
        except ValueError:
            pass
    if not NUMBER[decimal].fullmatch(text):
        return None
    for character in SPACES + (",." if decimal == "." else ".,")[0]:
        text = text.replace(character, "")
    try:
        return float(text.replace(",", "."))
    except ValueError:  # only a sign or a decimal comma
        return None


def parse_numbers(
    texts: Sequence[str | None], form: NumberFormat, name: str, place: Callable[[int], str]
) -> FloatArray:
    """Return the fields of a column as numbers; an error names the place ("row 3") of a field that is not."""
    try:
        if form.is_plain and "_" not in "".join(texts):  # type: ignore[arg-type]
            return np.fromiter(map(float, texts), np.float64, len(texts))  # type: ignore[arg-type]
    except (ValueError, TypeError):
        pass  # missing values or words: look at each field
    numbers = [form.parse(text) for text in texts]
    if None in numbers:
        i = numbers.index(None)
        found = f"column {name!r} holds {texts[i]!r} in {place(i)}"
        raise TableError(f"{found}, where numbers are expected", "not a number", name)
    return np.array(numbers, dtype=np.float64)


def find_format(texts: Sequence[str | None], decimal: str = ".") -> NumberFormat | None:
    """Return how the fields of a column are written, if at least half of those present are numbers.

    Then a word among them is an error, and no column is lost because of one wrong field.
    """
    present = [text for text in texts if text is not None and not is_missing(text)]
    forms = [NumberFormat(decimal), NumberFormat(boolean=True)]
    if unit := _unit(present):
        forms.insert(1, NumberFormat(decimal, unit))
    for form in forms:
        if 2 * sum(form.parse(text) is not None for text in present) >= len(present):
            return form
    return None


def find_formats(
    columns: Mapping[str, Sequence[str | None]], decimal: str = "."
) -> tuple[dict[str, NumberFormat], frozenset[str]]:
    """Return how the columns of numbers are written, and which of the other columns hold dates."""
    found = {name: find_format(texts, decimal) for name, texts in columns.items()}
    formats = {name: form for name, form in found.items() if form is not None}
    others = {name: texts for name, texts in columns.items() if name not in formats}
    return formats, frozenset(name for name, texts in others.items() if holds_dates(texts))


def _unit(texts: Iterable[str]) -> str:
    """Return the percent or currency sign at the ends of most fields, or nothing."""
    ends = (text.strip().lstrip("+-")[0:1] + text.strip()[-1:] for text in texts)
    signs = Counter(c for pair in ends for c in set(pair) if c == "%" or unicodedata.category(c) == "Sc")
    return signs.most_common(1)[0][0] if signs else ""


def find_decimal(fields: Iterable[str], delimiter: str) -> str:
    """Return the decimal sign of a file, "." or ",".

    A comma, if some number can only be read with a decimal comma and none only with a point. Where all can be
    read in both ways (1,234), it is a decimal comma between semicolons, which are used because of it.
    """
    votes = {".": 0, ",": 0}
    unclear = False
    fields = [field for field in fields if not is_missing(field)]
    if not any("," in field for field in fields):
        return "."
    for field in fields:
        text = field.strip().strip("%").strip()
        text = "".join(c for c in text if unicodedata.category(c) != "Sc").strip()
        point, comma = _number(text, ".") is not None, _number(text, ",") is not None
        if point != comma and ("." in text or "," in text):
            votes["." if point else ","] += 1
        unclear |= point and comma and "," in text
    if votes["."] or votes[","]:
        return "." if votes["."] else ","
    return "," if unclear and delimiter == ";" else "."


def is_number(text: str) -> bool:
    """Whether a field is a number, or missing, in some way of writing."""
    return any(NumberFormat(decimal).parse(text) is not None for decimal in ".,")


def holds_dates(texts: Sequence[str | None]) -> bool:
    """Whether at least half of the fields present are dates."""
    present = [text.strip() for text in texts if text is not None and not is_missing(text)]
    return 0 < len(present) <= 2 * sum(DATE.fullmatch(text) is not None for text in present)
