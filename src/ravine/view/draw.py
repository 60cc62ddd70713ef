"""Small drawings for a page as inline SVG: a density with its two sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from ravine._validate import FloatArray
from ravine.view.density import NodeDensity

DISTANCE = "signed distance from the split"  # the axis of every picture along a normal


def density(curve: NodeDensity, title: str, left: str, right: str) -> str:
    """Return a density and its threshold, the two sides in two colors; the texts have to be escaped."""
    width, height, base = 430, 190, 156  # units of the view box; below the base is the axis
    x, y = _scaled(curve, width, base, top=30)
    threshold = _place(curve, 0.0, width)
    labels = [(threshold - 8, "end", "l", left), (threshold + 8, "start", "r", right)]
    if threshold < 130:
        labels[0] = (4, "start", "l", left)
    if threshold > width - 130:
        labels[1] = (width - 4, "end", "r", right)
    near_edge = threshold < 130 or threshold > width - 130  # the labels would overlap in one line
    rows = [14, 28] if near_edge else [14, 14]
    words = "".join(
        f'<text class="{kind}" x="{at:.0f}" y="{row}" text-anchor="{anchor}">{text}</text>'
        for (at, anchor, kind, text), row in zip(labels, rows, strict=True)
    )
    ticks = "".join(
        f'<text x="{_place(curve, t, width):.0f}" y="{base + 15}" text-anchor="middle">{t:g}</text>'
        f'<path class="axis" d="M{_place(curve, t, width):.1f} {base}v4"/>'
        for t in _ticks(curve.points)
    )
    return (
        f'<svg class="density" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
        f"{_areas(curve, x, y, base)}"
        f'<path class="axis" d="M0 {base}H{width}"/>{ticks}'
        f'<path class="threshold" d="M{threshold:.1f} {rows[-1] + 4}V{base}"/>{words}'
        f'<text x="{width / 2:.0f}" y="{height - 4}" text-anchor="middle">{DISTANCE}</text></svg>'
    )


def spark(curve: NodeDensity) -> str:
    """Return a density in the size of a word; screen readers skip it, because the text has its numbers."""
    width, height = 84, 30
    x, y = _scaled(curve, width, height, 1)
    threshold = _place(curve, 0.0, width)
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" aria-hidden="true">'
        f'{_areas(curve, x, y, height)}<path class="threshold" d="M{threshold:.1f} 0V{height}"/></svg>'
    )


def _place(curve: NodeDensity, at: Any, width: float) -> Any:
    low, high = curve.points[0], curve.points[-1]
    return (at - low) / (high - low) * width


def _scaled(curve: NodeDensity, width: float, base: float, top: float) -> tuple[FloatArray, FloatArray]:
    return _place(curve, curve.points, width), base - curve.density / curve.density.max() * (base - top)


def _areas(curve: NodeDensity, x: FloatArray, y: FloatArray, base: float) -> str:
    """Return the two filled sides and the curve over both."""
    if base < 60:  # a fourth of the points is enough for a small drawing
        keep = np.unique(np.append(np.arange(0, len(x), 4), len(x) - 1))
        x, y = x[keep], y[keep]
    threshold = _place(curve, 0.0, x[-1])
    at_threshold = float(np.interp(threshold, x, y))
    paths = []
    for kind, here in (("l", x <= threshold), ("r", x > threshold)):
        points = list(zip(x[here], y[here], strict=True))
        points = [*points, (threshold, at_threshold)] if kind == "l" else [(threshold, at_threshold), *points]
        line = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        paths.append(f'<path class="{kind}" d="M{points[0][0]:.1f} {base:g}L{line}V{base:g}Z"/>')
    outline = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    return "".join(paths) + f'<path class="curve" d="M{outline}"/>'


def _ticks(points: FloatArray) -> list[float]:
    """Return about five round numbers within a range, 0 among them."""
    span = float(points[-1] - points[0])
    step = 10 ** np.floor(np.log10(span / 4))
    step *= next(m for m in (1, 2, 5, 10) if span / (m * step) <= 7)
    margin = 0.03 * span
    found = np.arange(np.ceil((points[0] + margin) / step), np.floor((points[-1] - margin) / step) + 1) * step
    return [float(np.round(t, 12)) for t in found]
