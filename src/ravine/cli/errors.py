"""How a command ends when it cannot finish: exit codes, and the exceptions that carry them."""

from __future__ import annotations

DATA_ERROR, USAGE_ERROR = 1, 2
INTERRUPTED, TERMINATED = 130, 143  # 128 + the number of the signal, as shells report it


class UsageError(Exception):
    """The command itself is wrong: an unknown option, or options that exclude each other."""


class Ended(SystemExit):
    """The program ends early, with one sentence and an exit code."""

    def __init__(self, sentence: str, exit_code: int) -> None:
        super().__init__(exit_code)
        self.sentence, self.exit_code = sentence, exit_code
