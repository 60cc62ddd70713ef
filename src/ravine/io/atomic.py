"""Files that appear complete or not at all, so that an interrupt or a full disk never leaves half a file."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file in the same folder; at the end it is renamed to `path`, on an error deleted."""
    path = file_to_replace(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)  # mkstemp makes files private; the umask can only be read by setting it
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file, or nothing."""
    with atomic_file(path) as file:
        file.write(content)
