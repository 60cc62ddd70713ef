"""Files that are written completely or not at all."""

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
    """Return the file that writing to `path` creates or replaces, with links resolved.

    Anything except a regular file is refused: moving a new file there would replace the pipe or device.
    """
    try:
        kind = stat.S_IFMT(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        kind = stat.S_IFREG
    if kind != stat.S_IFREG:
        what = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        raise InvalidInputError(f"{path} is {what.get(kind, 'a device')}, not a regular file")
    return Path(os.path.realpath(path))


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`, which replaces it at the end; after an error it is deleted."""
    path = file_to_replace(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all."""
    with atomic_file(path) as file:
        file.write(content)
