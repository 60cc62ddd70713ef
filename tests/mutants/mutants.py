"""Deliberate bugs: each replaces a piece of one source file, and tests are expected to fail with it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = Path("src/ravine")
REQUIRED = {"review": 0.95, "own": 0.90}  # the share of each origin that the tests have to catch


@dataclass(frozen=True)
class Mutant:
    """One bug: `old` occurs once in `file` (in src/ravine) and becomes `new`; `tests` should then fail.

    With `may_hang` a run that reaches the time limit counts as caught.
    """

    folder: str
    id: str
    origin: str
    file: str
    what: str
    old: str
    new: str
    tests: tuple[str, ...]
    may_hang: bool = False

    @property
    def path(self):
        """The file, from the root of the repository."""
        return SOURCE / self.file

    @property
    def compiled(self):
        """Whether the file is part of the compiled loops, which then have to be built again."""
        return self.path.suffix != ".py"

    def applied_to(self, text):
        """Return the text of the file with the bug in it."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.id}: {self.path} has its old text {found} times, not once")
        return text.replace(self.old, self.new)


def load():
    """Return all mutants, in the order of the files and of their entries."""
    return [
        Mutant(path.stem, **{**entry, "tests": tuple(entry["tests"])})
        for path in sorted(HERE.glob("*.toml"))
        for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]
    ]
