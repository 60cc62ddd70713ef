"""Compiled parts that belong to no single index: Newton's method in a bracket, and the penalty of labels."""

from __future__ import annotations

import numpy as np

from ravine._jit import inner, jit
from ravine.index.base import PlacedLabels

MAX_NEWTON_STEPS = 60  # halvings alone shrink a bracket by 2^60, which is below rounding


@inner
def newton_step(left, b, right, first, second):
    """Return the bracket of a minimizer after the derivatives at b, and Newton's next b, or the middle.

    At the minimizer itself b stays: whether a step lands on it or next to it is a matter of rounding.
    """
    left, right = (left, b) if first > 0.0 else (b, right)
    new = b - first / second if second > 0.0 else np.inf
    if new != b and not left < new < right:
        new = left / 2.0 + right / 2.0
    return left, new, right


@inner
def label_penalty(labels, threshold):
    """Return P(b), the sum of strength max(0, -side (t - b))^2, and its first two derivatives by b."""
    value, first, second = 0.0, 0.0, 0.0
    for i in range(len(labels.points)):
        wrong = labels.sides[i] * (threshold - labels.points[i])
        if wrong > 0.0:
            pull = labels.strength[i] * wrong
            value += pull * wrong
            first += 2.0 * labels.sides[i] * pull
            second += 2.0 * labels.strength[i]
    return value, first, second


@jit
def lowest_label_penalty(points, sides, strength):
    """Return the minimizer of the convex P, and P there; the middle of all minimizers if P can be 0."""
    labels = PlacedLabels(points, sides, strength)
    left, right = np.inf, -np.inf
    for i in range(len(points)):
        if sides[i] > 0.0:
            left = min(left, points[i])
        else:
            right = max(right, points[i])
    threshold = left / 2.0 + right / 2.0
    if right <= left:
        return threshold, 0.0
    for _ in range(MAX_NEWTON_STEPS):
        _, first, second = label_penalty(labels, threshold)
        before = threshold
        left, threshold, right = newton_step(left, threshold, right, first, second)
        if abs(threshold - before) <= 1e-12 * (abs(left) + abs(right)):
            break
    return threshold, label_penalty(labels, threshold)[0]
