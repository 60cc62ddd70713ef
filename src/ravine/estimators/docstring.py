"""Docstrings that are inherited like dataclass fields: each parameter is described once."""

from __future__ import annotations

import inspect
import re

INHERITED = ("Parameters", "Attributes")  # the numpydoc sections that list fields


def inherit(doc: str, base: str) -> str:
    """Return a numpydoc docstring with the parameters and attributes of a base class added.

    Entries of the class itself come first, and replace those of the base with the same name.

    >>> base = "B.\\n\\nParameters\\n----------\\na : int\\n    First.\\nb : int\\n    Second."
    >>> print(inherit("C.\\n\\nParameters\\n----------\\na : str\\n    Other.", base))
    C.
    <BLANKLINE>
    Parameters
    ----------
    a : str
        Other.
    b : int
        Second.
    """
    own, shared = _sections(doc), _sections(base)
    summary = own.pop("")
    fields = {title: _merged(own.pop(title, ""), shared.get(title, "")) for title in INHERITED}
    bodies = {title: body for title, body in fields.items() if body} | own
    return "\n\n".join([summary, *(f"{title}\n{'-' * len(title)}\n{body}" for title, body in bodies.items())])


def _sections(doc: str) -> dict[str, str]:
    """Return the text below each heading; the summary has the heading ""."""
    parts = ["", *re.split(r"^(\w+)\n-{3,}\n", inspect.cleandoc(doc), flags=re.MULTILINE)]
    return {title: body.rstrip() for title, body in zip(parts[::2], parts[1::2], strict=True)}


def _merged(own: str, base: str) -> str:
    """Return the entries of both sections; n_clusters comes first, as it does in the signatures."""
    entries = _entries(own)
    entries = entries | {name: entry for name, entry in _entries(base).items() if name not in entries}
    return "\n".join(entries[name] for name in sorted(entries, key=lambda name: name != "n_clusters"))


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section by name: each begins with a line that is not indented."""
    entries = [entry.rstrip() for entry in re.split(r"^(?=\S)", section, flags=re.MULTILINE) if entry.strip()]
    return {re.split(r" :|\n", entry)[0]: entry for entry in entries}
