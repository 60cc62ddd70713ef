"""The colors of plots, report and explorer: one per cluster, grays for the sides of a split, and heat.

The clusters' colors were chosen one after the other from five lightnesses and 48 hues, each as far as
possible from those before it in OKLab, for readers with normal sight, deuteranopia and protanopia alike.
Sides of a split are gray, so that they never look like a cluster.
"""

from __future__ import annotations

CLUSTERS = (
    *("#137cc7", "#f5c83e", "#a23206", "#f5b2fe", "#38ac5c", "#8b3586", "#66eca5", "#fe809c", "#987009"),
    *("#126e50", "#a6a2fa", "#18c6c6", "#4c4fb2", "#b0b728", "#b94980", "#00a1cb", "#6e8af0", "#cc7e02"),
    *("#d267a8", "#a153ac", "#6fc668", "#1d8d59", "#fcc181", "#1decde", "#0c8790", "#a22a40", "#dc8ae7"),
    *("#10aa8a", "#753fa0", "#a279e2"),
)
LEFT, RIGHT = "#5a5f66", "#b9bdc3"  # the two sides of a split
HEAT = ((0x2B, 0x6C, 0x8F), (0xF4, 0xF3, 0xEF), (0xB3, 0x4A, 0x1E))  # red green blue: low, middle, high


def cluster(label: int) -> str:
    """Return the color of a cluster; after 30 they begin again."""
    return CLUSTERS[label % len(CLUSTERS)]


def luminance(color: str) -> float:
    """Return the relative luminance of a color #rrggbb, from 0 (black) to 1 (white)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def text_on(color: str) -> str:
    """Return black or white, whichever stands out more on a color.

    >>> text_on("#ffff00"), text_on("#000080")
    ('#000000', '#ffffff')
    """
    light = luminance(color)
    return "#000000" if (light + 0.05) ** 2 >= 1.05 * 0.05 else "#ffffff"


def heat(share: float) -> str:
    """Return the color of a mean, from -1 (as low as the scale goes) to 1 (as high).

    >>> heat(-9.0), heat(0.0), heat(9.0)
    ('#2b6c8f', '#f4f3ef', '#b34a1e')
    """
    low, middle, high = HEAT
    end, part = high if share > 0 else low, min(1.0, abs(share))
    mixed = (round(m + part * (e - m)) for m, e in zip(middle, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
