"""Checkpoints: the results of finished searches in a file, from which the same fit resumes.

A search depends only on the rows and the path of its node. So the file holds results by path, and a fit that
finds a result there does not search. It is written like a model file, without pickle; see docs/format.md.
"""

from __future__ import annotations

import json
import os
import textwrap
import time
import warnings
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ravine
from ravine._validate import WITHOUT_EFFECT
from ravine.data.node import Labels
from ravine.data.rows import fingerprint
from ravine.exceptions import InvalidInputError
from ravine.io.atomic import file_to_replace, write_atomically
from ravine.split.split import Split
from ravine.store.archive import (
    MAX_REASON,
    Stored,
    read_archive,
    refuse_errors,
    require,
    write_archive,
)
from ravine.store.parts import check_format, format_facts, splits_from, splits_to_parts

WRITING_SHARE = 0.05  # share of the time of a fit that writing may take: a result waits until it is less
ADVICE = "give another path, or delete the file"

NodePath = tuple[int, ...]
Rank = tuple[int, float, float, float]  # the place of a split in the queue: the lowest comes first


class SearchResult(NamedTuple):
    """The result of a finished search: the split, whether it is to be made, and its rank in the queue."""

    split: Split | None
    accepted: bool
    rank: Rank = (0, 0.0, 0.0, 0.0)


class Checkpoint:
    """The results of finished searches by the path of their node, and the file that holds them.

    `fit` describes the fit by names and texts: a file that describes another one is refused. The rows are
    compared by `check_rows`, after they were read once.
    """

    def __init__(
        self, path: str | os.PathLike[str], fit: Mapping[str, str], rows: Any, labels: Labels | None
    ) -> None:
        self.path = check_path(path)
        self.fit = dict(fit)
        self.rows, self.labels = rows, labels
        self.found: dict[NodePath, SearchResult] = {}
        self._due, self._is_written = 0.0, True
        self._before: int | None = None  # the checksum of the data of the earlier fit
        if self.path.exists():
            self._read()

    def note(self, path: NodePath, found: SearchResult) -> None:
        """Add a result, and write the file unless it was written a moment ago."""
        self.found[path] = found
        self._is_written = False
        if time.perf_counter() >= self._due:
            self.write()

    def check_rows(self) -> None:
        """Refuse the file if rows, weights or labels are not those of the earlier fit."""
        if self._before not in (None, self.checksum):
            # Sums are rounded by blocks, so that a fit of the same rows in other blocks may end elsewhere.
            reason = "rows, weights or labels are not the same, or the rows are not in the same blocks"
            raise self._of_another_fit(reason)

    def write(self) -> None:
        """Write the results; a file that cannot be written is a warning, because the fit can go on."""
        if self._is_written or self._due == np.inf:
            return
        began = time.perf_counter()
        try:
            write_atomically(self.path, self._content())
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} cannot be written ({error.strerror}); the fit continues",
                UserWarning,
                stacklevel=2,
            )
            self._due = np.inf
            return
        now = time.perf_counter()
        # The file grows with the tree, and is written as a whole: the longer that took, the later the next.
        self._due, self._is_written = now + (now - began) / WRITING_SHARE, True

    @cached_property
    def checksum(self) -> int:
        """A number that tells rows, weights and labels from others; known after the rows were read once."""
        found = fingerprint(self.rows)
        labels = () if self.labels is None else (self.labels.rows, self.labels.classes)
        for array in (self.rows.weights, *labels):
            if array is not None:
                found = zlib.crc32(np.ascontiguousarray(array).tobytes(), found)
        return found

    def _content(self) -> bytes:
        made = [(i, one.split) for i, one in enumerate(self.found.values()) if one.split is not None]
        facts, arrays = splits_to_parts([split for _, split in made])
        meta = {
            **format_facts("checkpoint"),
            "fit": self.fit,
            "data": self.checksum,
            "paths": ["".join(map(str, path)) for path in self.found],
            **facts,
        }
        arrays["split_of"] = np.array([i for i, _ in made], dtype=np.int64)
        arrays["accepted"] = np.array([one.accepted for one in self.found.values()], dtype=np.int64)
        arrays["rank"] = np.array([one.rank for one in self.found.values()], dtype=np.float64).ravel()
        return write_archive(meta, arrays)

    def _read(self) -> None:
        with (
            open(self.path, "rb") as file,
            refuse_errors(f"{self.path} is not a valid ravine checkpoint", ADVICE),
        ):
            stored = read_archive(file)
            check_format(stored, "checkpoint")
            fit = stored.inner("fit")
            before = {name: fit.text(name) for name in fit.facts}
            self._before = stored.integer("data")
            self.found = _found_from(stored)
        for name in sorted({*before, *self.fit}):
            then, now = before.get(name), self.fit.get(name)
            if then != now:
                reason = textwrap.shorten(f"{name} was {then} and is {now}", MAX_REASON)
                raise self._of_another_fit(reason)

    def _of_another_fit(self, reason: str) -> InvalidInputError:
        return InvalidInputError(f"the checkpoint {self.path} belongs to another fit: {reason}; {ADVICE}")


def check_path(path: Any) -> Path:
    """Return the file that a checkpoint is written to, if its folder exists."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"checkpoint has to be the path of a file or None, got {path!r}")
    target = file_to_replace(Path(path))
    if not target.parent.is_dir():
        raise InvalidInputError(
            f"checkpoint: there is no folder {target.parent}; create it, or give another path"
        )
    return target


def _found_from(stored: Stored) -> dict[NodePath, SearchResult]:
    paths = stored.texts("paths")
    n = len(paths)
    require(all(set(path) <= set("12") for path in paths), "paths", "of the digits 1 and 2", paths)
    require(len(set(paths)) == n, "paths", "different", paths)
    splits = splits_from(stored)
    split_of = stored.integers("split_of", len(splits), low=0, high=n - 1)
    accepted = stored.integers("accepted", n, low=0, high=1)
    rank = stored.figures("rank", 4 * n).reshape(n, 4)
    made = dict(zip(split_of.tolist(), splits, strict=True))
    return {
        tuple(map(int, path)): SearchResult(
            made.get(i),
            bool(accepted[i]),
            (int(rank[i, 0]), *map(float, rank[i, 1:])),  # type: ignore[arg-type]
        )
        for i, path in enumerate(paths)
    }


def describe(estimator: Any, stream: Sequence[int]) -> dict[str, str]:
    """Return version, class and parameters of an estimator as texts; `stream` is the seed of its fit.

    Two fits with the same texts and the same rows have the same result.

    >>> from ravine import MinimumDensity
    >>> described = describe(MinimumDensity(3), (7,))
    >>> described["class"], described["n_clusters"], described["random_state"]
    ('MinimumDensity', '3', 'null, with the seed 7')
    """
    found = {
        name: json.dumps(value, default=_plain, sort_keys=True)
        for name, value in estimator.get_params(deep=False).items()
        if name not in WITHOUT_EFFECT
    }
    seed = ", ".join(map(str, stream))
    return {
        **found,
        "random_state": f"{found['random_state']}, with the seed {seed}",
        "ravine": ravine.__version__,
        "class": type(estimator).__name__,
    }


def _plain(value: Any) -> Any:
    """Return what JSON has no value for: arrays as lists, functions and others by their names."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"
