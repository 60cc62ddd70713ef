"""How a command ends when it cannot finish: exit codes, and the exception of a wrong command."""

from __future__ import annotations

DATA_ERROR, USAGE_ERROR = 1, 2
INTERRUPTED = 130  # 128 + the number of SIGINT, as shells report it


class UsageError(Exception):
    """The command itself is wrong: an unknown option, or options that exclude each other."""
