"""From the rows of a node to one boundary: the search, the methods, boundaries, starts."""
