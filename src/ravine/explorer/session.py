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
from ravine.explorer.state import ACTIONS, Rows, State, check_arguments, check_state
from ravine.io.atomic import write_atomically
from ravine.store.model_file import load, save
from ravine.tree.tree import ClusterTree

INDEX = "session.json"
FORMAT = {"format": "ravine session", "version": 2}  # at the head of the index


class Session:
    """Rows, the states that actions have made of a model, and the place among them.

    Actions follow one another, from whichever tab they come. `version` grows with everything that changes.
    Work is saved in `folder` after every action: each tree in a file of its own, then the index, each of them
    whole or not at all, so that a session begun again in the same folder is where it was.
    """

    held: BinaryIO | None = None  # keeps other explorers out of the folder

    def __init__(
        self,
        rows: Rows,
        model: Any,
        folder: Path,
        *,
        code: Sequence[str] = (),
        names: Sequence[str] | None = None,
    ) -> None:
        """Begin with a model, or with None continue what is in the folder."""
        self.rows, self.folder, self.names = rows, folder, names
        self.digest = digest(rows.X)
        self.lock = threading.RLock()
        self.position, self.version = 0, 0
        self.states: list[State] = []
        self._start = list(code)  # lines of Python that make the rows and the first model
        self._n_files = 0
        if model is None:
            self._restore()
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.states.append(self._write(State(model, model.tree_)))
            self._save(self.states, 0)

    @property
    def state(self) -> State:
        """The state that is shown."""
        return self.states[self.position]

    def act(self, action: str, arguments: dict[str, Any]) -> list[str]:
        """Carry out an action; what could be redone is forgotten. Return warnings as sentences."""
        with self.lock, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            states, position = self.states, self.position
            if action in ("undo", "redo"):
                position = self._next(-1 if action == "undo" else 1)
            else:
                given, base = check_arguments(action, arguments, self.rows.n_rows), self._base(action)
                found = ACTIONS[action](states[base], self.rows, **given)
                found = self._write(replace(found, action=action, arguments=given))
                states = [*states[: base + 1], found]
                position = base + 1
            self._save(states, position)
            # only now: an action that fails, or cannot be saved, changes nothing
            self.states, self.position = states, position
            self.version += 1
        return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]

    def _base(self, action: str) -> int:
        """Return the place of the state that an action changes: a cut replaces the cut before it."""
        return self.position - 1 if action == "cut" and self.state.action == "cut" else self.position

    @property
    def most_clusters(self) -> int:
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

    def _save(self, states: Sequence[State], position: int) -> None:
        index = {
            **FORMAT,
            "rows": self.digest,
            "position": position,
            "states": [_record(state) for state in states],
        }
        write_atomically(self.folder / INDEX, json.dumps(index).encode())

    def _write(self, state: State) -> State:
        """Write the tree of a state, and its model unless it is saved; return it with their files."""
        known = (old.files[0] for old in self.states if old.model is state.model)
        model = next(known, None)
        if model is None:
            model = self._new_file("model", "ravine")
            save(state.model, self.folder / model)
        tree = self._new_file("tree", "json")
        write_atomically(self.folder / tree, state.tree.to_json().encode())
        return replace(state, files=(model, tree))

    def _new_file(self, kind: str, suffix: str) -> str:
        """Return a name that no file in the folder has."""
        numbers = count(self._n_files + 1)
        self._n_files = next(n for n in numbers if not (self.folder / f"{kind}-{n}.{suffix}").exists())
        return f"{kind}-{self._n_files}.{suffix}"

    def _restore(self) -> None:
        """Read the states that were saved in the folder, for the same rows.

        If no line of the script makes `model`, it loads that of the session.
        """
        try:
            index = json.loads((self.folder / INDEX).read_text("utf-8"))
            if {key: index[key] for key in FORMAT} != FORMAT:
                raise InvalidModelError("it has another format, perhaps of another version of ravine")
            is_same = index["rows"] == self.digest
            if is_same:
                self._read(index["states"], index["position"])
        except (
            *(OSError, ValueError, LookupError, TypeError, AttributeError),
            *(RecursionError, OverflowError, RavineError),
        ) as error:
            raise InvalidInputError(
                f"{self.folder} is not a valid session ({error}); name another folder, or delete it"
            ) from error
        if not is_same:
            raise InvalidInputError(f"the session in {self.folder} is about other rows; name another folder")
        if not any(line.startswith("model = ") for line in self._start):
            file = (self.folder / self.states[0].files[0]).resolve()
            self._start.append(f"model = ravine.load({str(file)!r})  # as it was when the session began")

    def _read(self, records: Any, position: Any) -> None:
        """Set the states of which there are records; everything is checked, and no text becomes Python."""
        models = {name: load(_inside(self.folder, name)) for name in {str(one["model"]) for one in records}}
        if type(position) is not int or not 0 <= position < len(records):
            raise InvalidModelError(f"position {position!r} is none of its states")
        for record in records:
            tree = ClusterTree.from_json(_inside(self.folder, record["tree"]).read_text("utf-8"))
            parts: dict[str, Any] = {key: dict(record[key]) for key in ("names", "colors", "marks")}
            if self.states:
                arguments = check_arguments(record["action"], record["arguments"], self.rows.n_rows)
                parts |= {"action": record["action"], "arguments": arguments}
            files = record["model"], record["tree"]
            state = State(models[files[0]], tree, aside=tuple(record["aside"]), files=files, **parts)
            check_state(state, self.rows)
            self.states.append(state)
        self.position = position


def _record(state: State) -> dict[str, Any]:
    """Return what is saved of a state besides its model and its tree."""
    return {
        "model": state.files[0],
        "tree": state.files[1],
        "action": state.action,
        "arguments": state.arguments,
        "aside": list(state.aside),
        **{key: list(getattr(state, key).items()) for key in ("names", "colors", "marks")},
    }


def _inside(folder: Path, name: Any) -> Path:
    """Return a file of the folder; a name that leads out of it is refused."""
    if not isinstance(name, str) or Path(name).name != name:
        raise InvalidModelError(f"{name!r} is not the name of a file in it")
    return folder / name


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
