"""Whether a split is more than chance: tests, reference rows, discrete columns."""
