"""Optimizers that ask for sums over rows: projection pursuit on the unit sphere."""
