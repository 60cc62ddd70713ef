"""The tree of splits: what it holds, how it grows, and how rows find their leaf."""
