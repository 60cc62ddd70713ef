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
MINUS = "\u2212"  # the typographic minus sign
IN_PARENTHESES = re.compile(r"\((.*)\)")  # negative in accounts: (1,234)
CURRENCY_CODES = frozenset(  # of ISO 4217, those in wide use
    "AED AUD BRL CAD CHF CLP CNY COP CZK DKK EUR GBP HKD HUF IDR ILS INR JPY "  # noqa: SIM905
    "KRW MXN MYR NOK NZD PEN PHP PLN RON RUB SAR SEK SGD THB TRY TWD USD ZAR".split()
)
WORD_AT_AN_END = re.compile(r"([A-Z]{3})[\s\d.,+-]|.*[\s\d.,]([A-Z]{3})")
WITH_UNIT = re.compile(r"[+-]?\d[\d.,' ]*?\s?([^\W\d_].*)")  # a number, then text: 12.5 kg
TIME = r"\d{1,2}:\d{2}(:\d{2}.*)?( ?[aApP][mM])?"
DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}.*)?"  # 2024-01-31 12:00
    r"|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})( .*)?"  # 31/01/2024
    r"|\d{1,2}\.?[- /][^\W\d_]{3,9}\.?[- /,]+(\d{4}|\d{2})( .*)?"  # 31 Jan 2024
    rf"|[^\W\d_]{{3,9}}\.? \d{{1,2}},? \d{{4}}( .*)?|{TIME}"  # January 31, 2024; 12:00
)


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    `decimal` is "." or ","; the other one may separate thousands. `unit` is a percent or currency sign, or
    the code of a currency, that every number has, and that is dropped: 76.7% is 76.7. A number in parentheses
    is negative, as in accounts. A `boolean` column has true and false, 1 and 0.

    >>> NumberFormat().parse("1,234.5"), NumberFormat(",").parse("1.234,5")
    (1234.5, 1234.5)
    >>> NumberFormat(unit="$").parse("-$5"), NumberFormat(unit="EUR").parse("(EUR 5)")
    (-5.0, -5.0)
    >>> NumberFormat(boolean=True).parse("True")
    1.0
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
    text = _signed(text)
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


def _signed(text: str) -> str:
    """Return a number with a plain minus sign, also if it is negative by parentheses."""
    inner = IN_PARENTHESES.fullmatch(text)
    if inner and inner[1].strip()[:1].isdigit():
        text = f"-{inner[1].strip()}"
    return text.replace(MINUS, "-")


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
) -> tuple[dict[str, NumberFormat], frozenset[str], frozenset[str]]:
    """Return how the columns of numbers are written, and which others hold dates, or numbers with text."""
    found = {name: find_format(texts, decimal) for name, texts in columns.items()}
    formats = {name: form for name, form in found.items() if form is not None}
    return formats, *kinds_of_text({n: texts for n, texts in columns.items() if n not in formats})


def _unit(texts: Iterable[str]) -> str:
    """Return the percent or currency sign, or the code of a currency, of most fields, or nothing."""
    signs = Counter(unit for text in texts for unit in _units_of(text))
    return signs.most_common(1)[0][0] if signs else ""


def _units_of(text: str) -> set[str]:
    """Return the signs and the code of a currency at the ends of a field."""
    text = text.strip("() \t").lstrip(f"+-{MINUS}")
    found = {c for c in text[:1] + text[-1:] if c == "%" or unicodedata.category(c) == "Sc"}
    word = WORD_AT_AN_END.fullmatch(text) or WORD_AT_AN_END.match(text)
    return found | (CURRENCY_CODES.intersection(word.groups()) if word else set())


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
        text = field
        for unit in _units_of(field):
            text = text.replace(unit, "")
        text = text.strip()
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


def kinds_of_text(columns: Mapping[str, Sequence[str | None]]) -> tuple[frozenset[str], frozenset[str]]:
    """Return which columns of text hold dates, and which numbers with text.

    >>> kinds_of_text({"day": ["31 Jan 2024"], "weight": ["12.5 kg"], "city": ["Oslo"]})
    (frozenset({'day'}), frozenset({'weight'}))
    """
    dates = frozenset(name for name, texts in columns.items() if _hold_dates(texts))
    return dates, frozenset(n for n, texts in columns.items() if n not in dates and _hold_units(texts))


def _hold_dates(texts: Sequence[str | None]) -> bool:
    """Whether at least half of the fields present are dates."""
    present = [text.strip() for text in texts if text is not None and not is_missing(text)]
    return 0 < len(present) <= 2 * sum(DATE.fullmatch(text) is not None for text in present)


def _hold_units(texts: Sequence[str | None]) -> bool:
    """Whether most of the fields present are numbers with the same text after them: 12.5 kg."""
    present = [text.strip() for text in texts if text is not None and not is_missing(text)]
    units = Counter(match[1] for text in present if (match := WITH_UNIT.fullmatch(text)))
    return bool(units) and 2 * units.most_common(1)[0][1] > len(present)
