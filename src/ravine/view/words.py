"""Numbers as readers see them: in text, in tables and beside pictures."""

from __future__ import annotations

import math


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
    if math.isnan(value):
        return "none"
    return minus(f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}")


def percent(share: float) -> str:
    """Return a share in whole percent; what rounds to 0 has no sign.

    >>> percent(-0.001), percent(0.25)
    ('0\\xa0%', '25\\xa0%')
    """
    return minus(f"{round(100 * share) or 0}\u00a0%")


def share(part: float, whole: float) -> str:
    """Return a part of a whole in percent."""
    return "under 1\u00a0%" if 0 < part < 0.01 * whole else percent(part / whole if whole > 0 else 0.0)


def deviations(difference: float, unit: str = "\u00a0sd") -> str:
    """Return a difference in standard deviations, with its sign; what rounds to 0 has none."""
    return minus(f"{difference:+.1f}".replace("-0.0", "0.0").replace("+0.0", "0.0")) + unit


def minus(text: str) -> str:
    """Return a number with the sign that is as wide as a plus."""
    return text.replace("-", "\u2212")


def shorten(text: str, n: int) -> str:
    """Return a text of at most n characters.

    >>> shorten("a long name", 6)
    'a lon\u2026'
    """
    return text if len(text) <= n else text[: n - 1] + "\u2026"
