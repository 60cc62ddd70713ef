"""Pages are written by templates (`*.j2`), which escape all text; only this file imports Jinja."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ravine._validate import FloatArray
from ravine.view import palette, words


def render(template: str, **values: Any) -> str:
    """Return the text that a template of this folder makes of some values."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("ravine", "view"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    spoken = words.count, words.many, words.number, words.percent, words.share, words.deviations
    for write in (*spoken, words.shorten, break_name, draw_path, palette.text_on):
        made.filters[write.__name__] = write
    made.globals["n_colors"] = len(palette.CLUSTERS)
    return made


def break_name(name: str) -> list[str]:
    """Return the parts of a column's name, between which a line may break.

    >>> break_name("total_phenols/a")
    ['total_', 'phenols/', 'a']
    """
    return re.split(r"(?<=[_/.=\-])", name)


def draw_path(points: FloatArray, step: str, width: float, height: float, digits: int = 1) -> str:
    """Return points of a box of size 1, whose y axis points up, as coordinates of a drawing of a size.

    `step` stands between two points: L draws a line, h0M a dot at each.
    """
    at = (points * [width, -height] + [0, height]).tolist()
    return step.join(f"{x:.{digits}f} {y:.{digits}f}" for x, y in at)
