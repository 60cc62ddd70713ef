"""Table formats, streaming, and files that are written as a whole or not at all."""
