"""The explorer: a page on the local machine in which a tree is looked at, edited and exported."""
