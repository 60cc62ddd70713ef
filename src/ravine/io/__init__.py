"""Table formats, streaming, and files that are written completely or not at all."""
