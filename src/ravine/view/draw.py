"""Small drawings for a page: a density cut in two, as inline SVG."""

from __future__ import annotations

import numpy as np

from ravine._validate import FloatArray
from ravine.view.density import NodeDensity


def density(seen: NodeDensity, title: str, left: str, right: str) -> str:
    """Return a density with its cut, the two sides in two colors; the texts have to be escaped."""
    width, height, foot, top = 430, 190, 34, 30
    x, y = _scaled(seen, width, height - foot, top)
    threshold = _place(seen, 0.0, width)
    labels = [(threshold - 8, "end", "l", left), (threshold + 8, "start", "r", right)]
    if threshold < 130:
        labels[0] = (4, "start", "l", left)
    if threshold > width - 130:
        labels[1] = (width - 4, "end", "r", right)
    if threshold < 130 or threshold > width - 130:  # one above the other
        rows = [14, 28]
    else:
        rows = [14, 14]
    words = "".join(
        f'<text class="{kind}" x="{at:.0f}" y="{row}" text-anchor="{anchor}">{text}</text>'
        for (at, anchor, kind, text), row in zip(labels, rows, strict=True)
    )
    ticks = "".join(
        f'<text x="{_place(seen, t, width):.0f}" y="{height - foot + 15}" text-anchor="middle">{t:g}</text>'
        f'<path class="axis" d="M{_place(seen, t, width):.1f} {height - foot}v4"/>'
        for t in _ticks(seen.points)
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
        f"{_areas(seen, x, y, height - foot)}"
        f'<path class="axis" d="M0 {height - foot}H{width}"/>{ticks}'
        f'<path class="cut" d="M{threshold:.1f} {rows[-1] + 4}V{height - foot}"/>{words}'
        f'<text x="{width / 2:.0f}" y="{height - 4}" text-anchor="middle">distance from the cut</text></svg>'
    )


def spark(seen: NodeDensity) -> str:
    """Return a density in the size of a word; it repeats what the text beside it says."""
    width, height = 84, 30
    x, y = _scaled(seen, width, height, 1)
    threshold = _place(seen, 0.0, width)
    return (
        f'<svg class="spark" viewBox="0 0 {width} {height}" aria-hidden="true">'
        f'{_areas(seen, x, y, height)}<path class="cut" d="M{threshold:.1f} 0V{height}"/></svg>'
    )


def _place(seen: NodeDensity, at: float, width: float) -> float:
    low, high = seen.points[0], seen.points[-1]
    return float((at - low) / (high - low) * width)


def _scaled(seen: NodeDensity, width: float, base: float, top: float) -> tuple[FloatArray, FloatArray]:
    x = (seen.points - seen.points[0]) / (seen.points[-1] - seen.points[0]) * width
    return x, base - seen.density / seen.density.max() * (base - top)


def _areas(seen: NodeDensity, x: FloatArray, y: FloatArray, base: float) -> str:
    """Return the two filled sides and the curve over both."""
    if base < 60:  # a small one needs fewer points
        keep = np.unique(np.append(np.arange(0, len(x), 4), len(x) - 1))
        x, y = x[keep], y[keep]
    low, high = seen.points[0], seen.points[-1]
    threshold = -low / (high - low) * x[-1]
    at_cut = float(np.interp(threshold, x, y))
    paths = []
    for kind, here in (("l", x <= threshold), ("r", x > threshold)):
        points = list(zip(x[here], y[here], strict=True))
        points = [*points, (threshold, at_cut)] if kind == "l" else [(threshold, at_cut), *points]
        line = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        paths.append(f'<path class="{kind}" d="M{points[0][0]:.1f} {base:g}L{line}V{base:g}Z"/>')
    curve = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
    return "".join(paths) + f'<path class="curve" d="M{curve}"/>'


def _ticks(points: FloatArray) -> list[float]:
    """Return about five round places within a range, 0 among them."""
    span = float(points[-1] - points[0])
    step = 10 ** np.floor(np.log10(span / 4))
    step *= next(m for m in (1, 2, 5, 10) if span / (m * step) <= 7)
    margin = 0.03 * span
    found = np.arange(np.ceil((points[0] + margin) / step), np.floor((points[-1] - margin) / step) + 1) * step
    return [float(np.round(t, 12)) for t in found]
