"""Files that appear complete or not at all, so that an interrupt or a full disk never leaves half a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ravine.exceptions import InvalidInputError


def file_to_replace(path: Path) -> Path:
    """Return the file that writing to `path` creates or replaces, with links followed.

    Anything but a regular file is refused: `os.replace` would put a regular file in the place of a link, a
    pipe or a device.
    """
    target = Path(os.path.realpath(path))
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return target
    if kind != stat.S_IFREG:
        names = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise InvalidInputError(f"{path} is {names.get(kind, 'a device')}, not a regular file")
    return target


@contextmanager
def all_or_none() -> Iterator[Callable[[str | Path], Path]]:
    """Yield a function that takes a path and returns where to write its file.

    At the end these files are renamed to their paths, one after the other; on an error before that, all are
    deleted.
    """
    files: dict[Path, Path] = {}

    def place(path: str | Path) -> Path:
        target = file_to_replace(Path(path))
        name = Path(path)  # of a link, whose suffix tells the format
        temporary = target.with_name(f".{name.stem}.{os.urandom(4).hex()}{name.suffix}")
        files[temporary] = target
        return temporary

    try:
        yield place
        for temporary, target in files.items():
            if temporary.exists():
                os.replace(temporary, target)
    finally:
        for temporary in files:
            with suppress(OSError):
                temporary.unlink()


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file, or nothing."""
    with all_or_none() as place, open(place(path), "xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
