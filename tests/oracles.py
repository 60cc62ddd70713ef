"""The slow and obvious versions that the fast ones are held to."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp


def density(points, weights, h, b):
    """The projected density at b as the plain sum over all points."""
    kernel = np.exp(-((b - points) ** 2) / (2 * h * h)) / (h * np.sqrt(2 * np.pi))
    return float(weights @ kernel / weights.sum())


def log_density(points, weights, h, b):
    """Its logarithm, which is finite however far from all points b is."""
    terms = np.log(weights) - ((b - points) / h) ** 2 / 2
    return float(logsumexp(terms) - np.log(weights.sum() * h * np.sqrt(2 * np.pi)))


def log_mode(points, weights, h, b, step):
    """The log of the first mode on the way from b in steps: every step is taken, however many there are."""
    end = points[0] - h if step < 0 else points[-1] + h
    walk = [log_density(points, weights, h, b)]
    rising = False
    for k in range(1, int(max(0.0, np.ceil((end - b) / step))) + 1):
        walk.append(log_density(points, weights, h, b + k * step))
        if rising and walk[-1] <= walk[-2]:
            before, last, now = walk[-3:]
            bend = 2 * last - now - before
            return last + (before - now) ** 2 / (8 * bend) if bend > 0 else last
        rising = walk[-1] > walk[-2]
    return walk[-1]


def relative_depth(points, h, b):
    """The lower of the modes on both sides of b over the density at b, minus 1; 0 if there is none."""
    points, weights = np.sort(points), np.ones(len(points))
    lower = min(log_mode(points, weights, h, b, step) for step in (-h / 10, h / 10))
    return max(0.0, float(np.expm1(lower - log_density(points, weights, h, b))))


def margin(X, plane):
    """The distance from a hyperplane to the nearest row."""
    return np.abs(X @ plane.normal + plane.intercept).min() / np.linalg.norm(plane.normal)


def penalized(points, weights, h, alpha, eta, b):
    """f_CL of Equation 10 with epsilon = 1, the mean and the deviation taken from the points."""
    mean = weights @ points / weights.sum()
    std = np.sqrt(weights @ (points - mean) ** 2 / weights.sum())
    steepest = 1 / (np.exp(0.5) * h * h * np.sqrt(2 * np.pi))
    excess = max(0.0, abs(b - mean) - alpha * std)
    return density(points, weights, h, b) + steepest / eta * excess**2


def phi(points, weights, h, alpha, eta):
    """phi_CL of Equation 13: the least of f over a fine grid, its lowest valleys polished."""
    mean = weights @ points / weights.sum()
    std = np.sqrt(weights @ (points - mean) ** 2 / weights.sum())
    cuts = np.linspace(mean - alpha * std - eta, mean + alpha * std + eta, 2001)

    def value(b):
        return penalized(points, weights, h, alpha, eta, b)

    values = np.array([value(b) for b in cuts])
    around = np.concatenate([[np.inf], values, [np.inf]])
    valleys = np.flatnonzero((values <= around[:-2]) & (values <= around[2:]))
    polished = [(values.min(), cuts[values.argmin()])]
    for k in valleys[np.argsort(values[valleys])][:4]:
        # As a step from the grid: the tolerance of the optimizer is relative to its variable.
        steps = cuts[max(k - 1, 0)] - cuts[k], cuts[min(k + 1, 2000)] - cuts[k]
        found = minimize_scalar(
            lambda step, k=k: value(cuts[k] + step), bounds=steps, method="bounded", options={"xatol": 1e-12}
        )
        polished.append((found.fun, cuts[k] + found.x))
    min_weight, at = min(polished)
    return float(min_weight), float(at)


def central_difference(function, at, step):
    """The gradient of a function of a vector by central differences."""
    gradient = np.empty(len(at))
    for j in range(len(at)):
        up, down = at.copy(), at.copy()
        up[j] += step
        down[j] -= step
        gradient[j] = (function(up) - function(down)) / (2 * step)
    return gradient


def two_blobs(n=400, d=5, gap=6.0, seed=0, share=0.5):
    """Two Gaussian blobs apart along a random direction, with their labels."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    labels = (np.arange(n) >= share * n).astype(int)
    return rng.standard_normal((n, d)) + gap * labels[:, None] * direction, labels
