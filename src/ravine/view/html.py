"""Pieces of a page: numbers, names, chips, tables, figures. Text from the data is escaped here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from ravine.view import palette

Columns = Mapping[str, Callable[[Any], str]]


def count(weight: float) -> str:
    """Return a number of rows.

    >>> count(1234.0), count(0.5)
    ('1,234', '0.5')
    """
    return f"{weight:,.0f}" if weight == round(weight) else f"{weight:,.4g}"


def many(n: float, what: str) -> str:
    """Return a number with its noun.

    >>> many(1, "row"), many(2, "row")
    ('1 row', '2 rows')
    """
    return f"{count(n)} {what}{'' if n == 1 else 's'}"


def number(value: float) -> str:
    """Return a number in three digits."""
    if np.isnan(value):
        return "none"
    return _minus(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")


def percent(share: float) -> str:
    """Return a share in whole percent; what rounds to 0 has no sign.

    >>> percent(-0.001), percent(0.25)
    ('0\\xa0%', '25\\xa0%')
    """
    return _minus(f"{round(100 * share) or 0}\u00a0%")


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent."""
    return "under 1\u00a0%" if 0 < part < 0.01 * whole else percent(part / whole if whole > 0 else 0.0)


def deviations(difference: float, unit: str = "\u00a0sd") -> str:
    """Return a difference in standard deviations, with its sign; what rounds to 0 has none."""
    return _minus(f"{difference:+.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0")) + unit


def _minus(text: str) -> str:
    return text.replace("-", "\u2212")


def name(feature: str) -> str:
    """Return the name of a column, with places where a line may break."""
    return re.sub(r"([_/.=\-])", r"\1<wbr>", escape(feature))


def shortened(text: str, n: int) -> str:
    """Return a text of at most n characters.

    >>> shortened("a long name", 6)
    'a lon\u2026'
    """
    return text if len(text) <= n else text[: n - 1] + "\u2026"


def color(label: int) -> str:
    """Return the class of CSS that has the color of a cluster."""
    return f"c{label % len(palette.CLUSTERS)}"


def chip(label: int) -> str:
    """Return the number of a cluster on its color."""
    return f'<span class="chip {color(label)}">{label}</span>'


def table(kind: str, caption: str, items: Iterable[Any], columns: Columns, *, tools: bool = False) -> str:
    """Return a table with one row per item.

    `columns` are headings and the functions that write the cells. A heading that starts with # is for
    numbers, an empty one for drawings; the first column names the row. With `tools` a click on a heading
    sorts the rows, and a field finds rows by their text.
    """
    kinds = [' class="n"' if title.startswith("#") else "" for title in columns]

    def heading(title: str) -> str:
        title = title.removeprefix("#")
        return f'<button type="button" class="sort">{title}</button>' if tools else title

    titles = "".join(
        f'<th scope="col"{kind}>{heading(title)}</th>' if title else "<td></td>"
        for title, kind in zip(columns, kinds, strict=True)
    )
    lines = []
    for item in items:
        first, *others = (cell(item) for cell in columns.values())
        cells = "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(others, kinds[1:], strict=True))
        lines.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    words = "Find in this table"
    field = f'<input type="search" class="find" placeholder="{words}" aria-label="{words}">'
    return (
        f'{field if tools and len(lines) > 8 else ""}<div class="wide"><table class="{kind}">'
        f"<caption>{caption}</caption><thead><tr>{titles}</tr></thead>"
        f"<tbody>\n{''.join(lines)}</tbody></table></div>"
    )


def listing(items: Iterable[tuple[str, str]]) -> str:
    """Return names with their values."""
    return "<dl>" + "".join(f"<dt>{key}</dt><dd>{value}</dd>" for key, value in items) + "</dl>"


def figure(drawing: str, caption: str, file: str) -> str:
    """Return a drawing with its caption and a button that saves it as a file."""
    button = f'<button type="button" class="save" data-file="{file}.svg">Save as SVG</button>'
    return f'<figure><div class="wide">{drawing}</div><figcaption>{caption} {button}</figcaption></figure>'


def folded(title: str, content: str) -> str:
    """Return content that a click opens."""
    return f'<details class="fold"><summary>{title}</summary>{content}</details>'
