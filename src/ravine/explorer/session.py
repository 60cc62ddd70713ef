"""A session: the history of states, saved on every action, and the script that repeats it."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ravine.exceptions import InvalidInputError, InvalidModelError, RavineError
from ravine.explorer.script import code_of, script_of
from ravine.explorer.state import ACTIONS, Rows, State, check_arguments
from ravine.io.atomic import write_atomically
from ravine.store.model_file import load, save

INDEX, MODEL = "session.json", "first-model.ravine"
FORMAT = {"format": "ravine session", "version": 3}  # at the head of the index


class Session:
    """Rows, the states that actions have made of a model, and the place among them.

    Actions follow one another, from whichever tab they come. `version` grows with everything that changes.
    The folder has the first model and the list of the actions, which is written after each of them. A session
    that is begun again in the same folder repeats them: the same actions give the same states.
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
        if model is None:
            self._restore()
        else:
            self.states.append(State(model, model.tree_))
            save(model, folder / MODEL)
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
                base = self._base(action)
                states = [*states[: base + 1], self._carry_out(states[base], action, arguments)]
                position = base + 1
            self._save(states, position)
            # only now: an action that fails, or cannot be saved, changes nothing
            self.states, self.position = states, position
            self.version += 1
        return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]

    def _carry_out(self, state: State, action: str, arguments: Any) -> State:
        """Return the state after an action, whose arguments are checked first."""
        given = check_arguments(action, arguments, self.rows.n_rows)
        return replace(ACTIONS[action](state, self.rows, **given), action=action, arguments=given)

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
            "actions": [[state.action, state.arguments] for state in states[1:]],
        }
        write_atomically(self.folder / INDEX, json.dumps(index).encode())

    def _restore(self) -> None:
        """Repeat the actions that were saved in the folder, for the same rows.

        If no line of the script makes `model`, it loads that of the session.
        """
        try:
            index = json.loads((self.folder / INDEX).read_text("utf-8"))
            if {key: index[key] for key in FORMAT} != FORMAT:
                raise InvalidModelError("it has another format, perhaps of another version of ravine")
            if index["rows"] != self.digest:  # actions name rows by their numbers
                raise InvalidModelError("it is about other rows")
            self._repeat(index["actions"], index["position"])
        except (
            *(OSError, ValueError, LookupError, TypeError, AttributeError),
            *(RecursionError, OverflowError, RavineError),
        ) as error:
            raise InvalidInputError(
                f"{self.folder} is not a valid session ({error}); name another folder, or delete it"
            ) from error
        if not any(line.startswith("model = ") for line in self._start):
            file = (self.folder / MODEL).resolve()
            self._start.append(f"model = ravine.load({str(file)!r})  # as it was when the session began")

    def _repeat(self, actions: Any, position: Any) -> None:
        """Set the states that actions make of the first model; no text of the folder becomes Python."""
        if type(position) is not int or not 0 <= position <= len(actions):
            raise InvalidModelError(f"position {position!r} is none of its states")
        model = load(self.folder / MODEL)
        self.rows.of(model)  # refuses a model of other columns
        states = [State(model, model.tree_)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were told when the action was made
            for action, arguments in actions:
                states.append(self._carry_out(states[-1], action, arguments))
        self.states, self.position = states, position


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
