"""Splitters: from rows to one boundary, or to the answer that there is nothing to split."""
