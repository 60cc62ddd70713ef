"""Projection indices: what makes a line through the data a good one to cut."""
