"""A session: the history of states, saved on every action, and the script that repeats it."""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ravine.estimators.model_file import load, save
from ravine.exceptions import InvalidInputError, InvalidModelError, RavineError
from ravine.explorer.state import ACTIONS, Rows, State, begin
from ravine.io.atomic import write_atomically
from ravine.tree.tree import ClusterTree

INDEX = "session.json"
FORMAT = "ravine session"
VERSION = 1


class Session:
    """Rows, the states that actions have made of a model, and the place among them.

    Actions follow one another, from whichever tab they come. `version` grows with everything that changes.
    Work is saved in `folder` after every action: each tree in a file of its own, then the index, each of them
    whole or not at all, so that a session begun again in the same folder is where it was.
    """

    def __init__(
        self, rows: Rows, model: Any, folder: Path, *, code: Sequence[str], names: Sequence[str] | None = None
    ) -> None:
        self.rows, self.folder, self.names = rows, folder, names
        self.digest = digest(rows.X)
        self.lock = threading.RLock()
        self.states: list[State] = [begin(model, code)]
        self.position, self.version = 0, 0
        self._files: dict[int, dict[str, Any]] = {}  # what is saved of each state, by its id
        self._n_files = 0
        self._models: dict[int, str] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._save()

    @property
    def state(self) -> State:
        """The state that is shown."""
        return self.states[self.position]

    def act(self, action: str, arguments: dict[str, Any]) -> list[str]:
        """Carry out an action; what could be redone is forgotten. Return warnings as sentences."""
        if action not in (*ACTIONS, "undo", "redo"):
            raise InvalidInputError(
                f"there is no action {action!r}; there are {', '.join(ACTIONS)}, undo, redo"
            )
        with self.lock, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if action in ("undo", "redo"):
                self._step(-1 if action == "undo" else 1)
            else:
                self.position = self._base(action)
                found = ACTIONS[action](self.state, self.rows, **arguments)
                self.states = [*self.states[: self.position + 1], found]
                self.position += 1
            self.version += 1
            self._save()
        return [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]

    def _base(self, action: str) -> int:
        """Return the place of the state that an action changes: a cut replaces the cut before it."""
        was_cut = self.position > 0 and self.state.code[0].startswith("tree = tree.cut(")
        return self.position - 1 if action == "cut" and was_cut else self.position

    @property
    def most_leaves(self) -> int:
        """The largest number of leaves that a cut can leave."""
        return self.states[self._base("cut")].tree.n_leaves

    def _step(self, step: int) -> None:
        if not 0 <= self.position + step < len(self.states):
            raise InvalidInputError(f"there is nothing to {'undo' if step < 0 else 'redo'}")
        self.position += step

    # --- the script ---

    def code(self) -> list[list[str]]:
        """Return the lines of Python of every action up to here."""
        return [list(state.code) for state in self.states[: self.position + 1]]

    def script(self) -> str:
        """Return Python that, run alone, gives the same labels."""
        shown = self.states[: self.position + 1]
        used = sorted({name for state in shown for name in state.imports})
        lines = ['"""Made with ravine explore: the clusters of these rows, step by step."""', ""]
        lines += ["import numpy as np", "", "import ravine", f"from ravine import {', '.join(used)}"]
        if any(state.tree.mapped for state in shown):
            lines.append("from ravine.view.fitted import rows_for_tree")
        lines.append("")
        lines += [line for state in shown for line in state.code]
        data = "tree.route(rows)" if self.state.tree.mapped else "tree.predict(X)"
        lines += ["", f"labels = {data}", 'np.savetxt("labels.csv", labels, fmt="%d")', ""]
        return "\n".join(lines)

    # --- on disk ---

    def _save(self) -> None:
        index = {
            "format": FORMAT,
            "version": VERSION,
            "rows": self.digest,
            "position": self.position,
            "states": [self._saved(state) for state in self.states],
        }
        write_atomically(self.folder / INDEX, json.dumps(index).encode())

    def _saved(self, state: State) -> dict[str, Any]:
        """Write the tree of a state, and its model, unless they are saved; return the rest as JSON."""
        if id(state) not in self._files:
            if id(state.model) not in self._models:
                self._models[id(state.model)] = self._new_file("model", "ravine")
                save(state.model, self.folder / self._models[id(state.model)])
            name = self._new_file("tree", "json")
            write_atomically(self.folder / name, state.tree.to_json().encode())
            self._files[id(state)] = {
                "model": self._models[id(state.model)],
                "tree": name,
                "code": list(state.code),
                "imports": list(state.imports),
                "aside": list(state.aside),
                **{key: list(getattr(state, key).items()) for key in ("names", "colors", "marks")},
            }
        return self._files[id(state)]

    def _new_file(self, kind: str, suffix: str) -> str:
        self._n_files += 1
        return f"{kind}-{self._n_files}.{suffix}"

    @classmethod
    def restored(cls, rows: Rows, folder: Path, names: Sequence[str] | None = None) -> Session:
        """Return the session that was saved in a folder, for the same rows."""
        try:
            index = json.loads((folder / INDEX).read_text("utf-8"))
            if index["format"] != FORMAT or index["version"] != VERSION:
                raise InvalidModelError("it has another format")
            saved, position = index["states"], int(index["position"])
            models = {name: load(folder / name) for name in {one["model"] for one in saved}}
            states = [_state_from(one, models, folder) for one in saved]
            states[position]
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RavineError) as error:
            raise InvalidInputError(
                f"{folder} is not a valid session ({error}); name another folder, or delete it"
            ) from error
        found = cls.__new__(cls)
        found.digest = digest(rows.X)
        if index["rows"] != found.digest:
            raise InvalidInputError(f"the session in {folder} is about other rows; name another folder")
        found.rows, found.folder, found.names, found.lock = rows, folder, names, threading.RLock()
        found.states, found.position, found.version = states, position, 0
        found._files = {id(state): one for state, one in zip(states, saved, strict=True)}
        found._models = {id(model): name for name, model in models.items()}
        numbers = [int(path.stem.split("-")[1]) for path in folder.glob("*-*.*") if path.stem[-1].isdigit()]
        found._n_files = max(numbers, default=0)
        return found


def _state_from(one: dict[str, Any], models: dict[str, Any], folder: Path) -> State:
    tree = ClusterTree.from_json((folder / str(one["tree"])).read_text("utf-8"))
    parts: dict[str, Any] = {key: {int(k): v for k, v in one[key]} for key in ("names", "colors", "marks")}
    parts |= {key: tuple(one[key]) for key in ("code", "imports", "aside")}
    return State(models[one["model"]], tree, **parts)


def digest(X: Any) -> str:
    """Return a number of the content of the rows, so that a session is not continued with others."""
    found = hashlib.sha256(str(X.shape).encode())
    parts = [getattr(X, name) for name in ("indptr", "indices", "data")] if hasattr(X, "indptr") else [X]
    for part in parts:
        for start in range(0, part.shape[0], 1 << 16):
            found.update(np.ascontiguousarray(part[start : start + (1 << 16)]).data)
    return found.hexdigest()
