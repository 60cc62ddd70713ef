"""Projection indices: how good the best threshold on a line through the data is."""
