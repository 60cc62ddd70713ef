"""A session: the history of states, saved on every action, and the script that repeats it."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ravine.exceptions import InvalidInputError, InvalidModelError, RavineError
from ravine.explorer.script import code_of, script_of
from ravine.explorer.state import ACTIONS, Rows, State, begin, check_state, checked
from ravine.io.atomic import write_atomically
from ravine.store.model_file import load, save
from ravine.tree.tree import ClusterTree

INDEX = "session.json"
FORMAT = "ravine session"
VERSION = 2


class Session:
    """Rows, the states that actions have made of a model, and the place among them.

    Actions follow one another, from whichever tab they come. `version` grows with everything that changes.
    Work is saved in `folder` after every action: each tree in a file of its own, then the index, each of them
    whole or not at all, so that a session begun again in the same folder is where it was.
    """

    held: BinaryIO | None = None  # keeps other explorers out of the folder

    def __init__(
        self, rows: Rows, model: Any, folder: Path, *, code: Sequence[str], names: Sequence[str] | None = None
    ) -> None:
        self._begin(rows, folder, names)
        folder.mkdir(parents=True, exist_ok=True)
        first = begin(model)
        self._start += code
        self._records.append(self._record(first))
        self.states.append(first)
        self._save(self._records, 0)

    def _begin(self, rows: Rows, folder: Path, names: Sequence[str] | None) -> None:
        self.rows, self.folder, self.names = rows, folder, names
        self.digest = digest(rows.X)
        self.lock = threading.RLock()
        self.position, self.version = 0, 0
        self.states: list[State] = []
        self._records: list[dict[str, Any]] = []  # what is saved of each state
        self._start: list[str] = []  # lines of Python that make the rows and the first model
        self._n_files = 0

    @property
    def state(self) -> State:
        """The state that is shown."""
        return self.states[self.position]

    def act(self, action: str, arguments: dict[str, Any]) -> list[str]:
        """Carry out an action; what could be redone is forgotten. Return warnings as sentences."""
        with self.lock, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            states, records, position = self.states, self._records, self.position
            if action in ("undo", "redo"):
                position = self._next(-1 if action == "undo" else 1)
            else:
                given, base = checked(action, arguments, self.rows.n_rows), self._base(action)
                found = ACTIONS[action](states[base], self.rows, **given)
                found = replace(found, action=action, arguments=given)
                states = [*states[: base + 1], found]
                records = [*records[: base + 1], self._record(found)]
                position = base + 1
            self._save(records, position)
            # only now: an action that fails, or cannot be saved, changes nothing
            self.states, self._records, self.position = states, records, position
            self.version += 1
        return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]

    def _base(self, action: str) -> int:
        """Return the place of the state that an action changes: a cut replaces the cut before it."""
        return self.position - 1 if action == "cut" and self.state.action == "cut" else self.position

    @property
    def most_leaves(self) -> int:
        """The largest number of clusters that a cut can leave."""
        return self.states[self._base("cut")].tree.n_clusters

    def _next(self, step: int) -> int:
        if not 0 <= self.position + step < len(self.states):
            raise InvalidInputError(f"there is nothing to {'undo' if step < 0 else 'redo'}")
        return self.position + step

    def code(self) -> list[list[str]]:
        """Return the lines of Python of every action up to here."""
        return code_of(self._start, self.states[: self.position + 1])

    def script(self) -> str:
        """Return Python that, run alone, gives the same labels."""
        return script_of(self._start, self.states[: self.position + 1])

    # --- on disk ---

    def _save(self, records: Sequence[dict[str, Any]], position: int) -> None:
        index = {
            "format": FORMAT,
            "version": VERSION,
            "rows": self.digest,
            "position": position,
            "states": records,
        }
        write_atomically(self.folder / INDEX, json.dumps(index).encode())

    def _record(self, state: State) -> dict[str, Any]:
        """Write the tree of a state, and its model unless it is saved; return the rest as JSON."""
        known = zip(self.states, self._records, strict=True)
        model = next((record["model"] for old, record in known if old.model is state.model), None)
        if model is None:
            model = self._new_file("model", "ravine")
            save(state.model, self.folder / model)
        tree = self._new_file("tree", "json")
        write_atomically(self.folder / tree, state.tree.to_json().encode())
        return {
            "model": model,
            "tree": tree,
            "action": state.action,
            "arguments": state.arguments,
            "aside": list(state.aside),
            **{key: list(getattr(state, key).items()) for key in ("names", "colors", "marks")},
        }

    def _new_file(self, kind: str, suffix: str) -> str:
        """Return a name that no file in the folder has."""
        numbers = count(self._n_files + 1)
        self._n_files = next(n for n in numbers if not (self.folder / f"{kind}-{n}.{suffix}").exists())
        return f"{kind}-{self._n_files}.{suffix}"

    @classmethod
    def restored(
        cls, rows: Rows, folder: Path, names: Sequence[str] | None = None, code: Sequence[str] = ()
    ) -> Session:
        """Return the session that was saved in a folder, for the same rows.

        `code` makes the rows, and perhaps `model`; by default the script loads the model of the session.
        """
        found = cls.__new__(cls)
        found._begin(rows, folder, names)
        try:
            index = json.loads((folder / INDEX).read_text("utf-8"))
            if index["format"] != FORMAT or index["version"] != VERSION:
                raise InvalidModelError("it has another format, perhaps of another version of ravine")
            if index["rows"] == found.digest:
                found._records, found.position = index["states"], index["position"]
                files = {str(record["model"]) for record in found._records}
                models = {name: load(_inside(folder, name)) for name in files}
                found.states = [
                    _state_from(record, models, folder, rows, is_first=i == 0)
                    for i, record in enumerate(found._records)
                ]
                if type(found.position) is not int or not 0 <= found.position < len(found.states):
                    raise InvalidModelError(f"position {found.position!r} is none of its states")
        except (
            *(OSError, ValueError, KeyError, TypeError, IndexError, AttributeError),
            *(RecursionError, OverflowError, RavineError),
        ) as error:
            raise InvalidInputError(
                f"{folder} is not a valid session ({error}); name another folder, or delete it"
            ) from error
        if not found.states:
            raise InvalidInputError(f"the session in {folder} is about other rows; name another folder")
        found._start = list(code)
        if not any(line.startswith("model = ") for line in code):
            file = (folder / found._records[0]["model"]).resolve()
            found._start.append(f"model = ravine.load({str(file)!r})  # as it was when the session began")
        return found


def _inside(folder: Path, name: Any) -> Path:
    """Return a file of the folder; a name that leads out of it is refused."""
    if not isinstance(name, str) or Path(name).name != name:
        raise InvalidModelError(f"{name!r} is not the name of a file in it")
    return folder / name


def _state_from(
    record: dict[str, Any], models: dict[str, Any], folder: Path, rows: Rows, *, is_first: bool
) -> State:
    """Return a saved state, of which everything is checked; no text of it becomes Python."""
    tree = ClusterTree.from_json(_inside(folder, record["tree"]).read_text("utf-8"))
    parts: dict[str, Any] = {key: dict(record[key]) for key in ("names", "colors", "marks")}
    if not is_first:
        arguments = checked(record["action"], record["arguments"], rows.n_rows)
        parts |= {"action": record["action"], "arguments": arguments}
    state = State(models[record["model"]], tree, aside=tuple(record["aside"]), **parts)
    check_state(state, rows)
    return state


def hold(folder: Path) -> BinaryIO:
    """Return an open file that keeps other explorers out of a folder until it is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "ab")  # noqa: SIM115
    except OSError as error:
        raise InvalidInputError(
            f"no session can be saved in {folder} ({error}); name another folder"
        ) from error
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        file.close()
        raise InvalidInputError(
            f"another explorer has the session in {folder} open; stop that one, or name another folder"
        ) from error
    except OSError:
        pass  # a file system without locks
    return file


def digest(X: Any) -> str:
    """Return a number of the content of the rows, so that a session is not continued with others."""
    found = hashlib.sha256(str(X.shape).encode())
    parts = [getattr(X, name) for name in ("indptr", "indices", "data")] if hasattr(X, "indptr") else [X]
    for part in parts:
        for start in range(0, part.shape[0], 1 << 16):
            found.update(np.ascontiguousarray(part[start : start + (1 << 16)]).data)
    return found.hexdigest()
