"""The tree of splits: its nodes, its growth, and how rows find their leaf."""
