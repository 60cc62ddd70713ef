"""What a file of figures comes from: command, commit, source tree, versions; stored beside it as JSON."""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import json
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGES = ("numpy", "scipy", "scikit-learn", "daqp")
# parts of the library that decide figures
PARTS = (
    "data",
    "index",
    "optimize",
    "split",
    "tree",
    "estimators",
    "metrics.py",
    "features",
    "evidence",
    "papers",
    "papers.py",
)
CHANGED = " with changes"  # after a commit: the sources were not those of the commit


def _git(*words: str) -> str:
    """Return what git answers, or an empty text outside of a repository."""
    try:
        found = subprocess.run(["git", "-C", str(HERE), *words], capture_output=True, text=True)
    except OSError:
        return ""
    return found.stdout.strip()


def source(commit: str = "HEAD") -> str:
    """Return one hash of the parts of the library that decide figures, as committed.

    Commits of docs, tests, the command line or pictures do not change it. Changes that are not committed
    are named for the present state only.
    """
    found = [_git("rev-parse", "--verify", "--quiet", f"{commit}:src/ravine/{part}") for part in PARTS]
    trees = "\n".join(filter(None, found))  # an older commit has fewer folders
    changed = commit == "HEAD" and _git("status", "--porcelain", "--", *(f"../src/ravine/{p}" for p in PARTS))
    return hashlib.sha1(trees.encode()).hexdigest() + (CHANGED if changed else "")


def shown(words: Sequence[str]) -> str:
    """Return a command as others can repeat it: with DIR for the folder of the data, without --out."""
    kept = [Path(words[0]).name]
    for before, word in itertools.pairwise(words):
        if "--out" not in (before, word):
            kept.append("DIR" if before == "--data" else word)
    return "python benchmarks/" + " ".join(kept)


def stamp() -> dict[str, Any]:
    """Return the command, the commit, the hash of the sources, and the versions of Python and packages."""
    changed = CHANGED if source().endswith(CHANGED) else ""
    return {
        "command": shown(sys.argv),
        "commit": _git("rev-parse", "HEAD") + changed,
        "source": source(),
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in PACKAGES},
        },
    }


def stamp_of(path: Path) -> Path:
    """Return where the stamp of a file of figures is stored."""
    return path.with_suffix(".json")


def read_stamp(path: Path) -> dict[str, Any]:
    """Return the stamp of a file of figures, empty if it has none."""
    beside = stamp_of(path)
    if not (path.exists() and beside.exists()):
        return {}
    found: dict[str, Any] = json.loads(beside.read_text())
    return found


def write_stamp(path: Path, **more: Any) -> None:
    """Store the stamp of a file of figures that is written now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp_of(path).write_text(json.dumps({**stamp(), **more}, indent=1) + "\n")


def add_command(path: Path) -> None:
    """Add this command to the stamp of a file that is filled by several."""
    made = read_stamp(path)
    if shown(sys.argv) not in made["command"].split("; "):
        made["command"] += "; " + shown(sys.argv)
        stamp_of(path).write_text(json.dumps(made, indent=1) + "\n")


def is_current(path: Path) -> bool:
    """Return whether a file of figures was made with the library as it is now, as committed."""
    made = read_stamp(path).get("source", "")
    return bool(made) and not made.endswith(CHANGED) and made == source()


def announce_earlier(path: Path) -> None:
    """Print one line if a file that is filled line by line has lines made with another library."""
    if path.exists() and not is_current(path):
        made = read_stamp(path).get("commit", "an unknown commit")
        print(f"{path.name}: lines of {made} stay as they are; delete the file to run all anew", flush=True)
