"""The folders tree and view import nothing above them, and have no cycles, lazy imports included."""

import ast
from pathlib import Path

import ravine

SOURCE = Path(ravine.__file__).parent
MODULES = {
    f"ravine.{path.parent.name}.{path.stem}": path
    for folder in ("tree", "view")
    for path in (SOURCE / folder).glob("*.py")
}


def imported(path):
    """Every module that a file imports at run time, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (
                full if (full := f"{node.module}.{name.name}") in MODULES else node.module
                for name in node.names
            )


def test_the_tree_imports_nothing_above_it():
    below = {"_validate", "exceptions", "data", "index", "optimize", "split", "io", "tree"}
    for name, path in MODULES.items():
        for module in imported(path):
            if module.split(".")[0] == "ravine":
                assert module != "ravine", name
                assert name.startswith("ravine.view") or module.split(".")[1] in below, (name, module)


def test_modules_of_tree_and_view_form_no_cycle():
    waiting = {name: {m for m in imported(path) if m in MODULES} for name, path in MODULES.items()}
    while free := [name for name, needed in waiting.items() if not needed]:
        for name in free:
            del waiting[name]
        for needed in waiting.values():
            needed.difference_update(free)
    assert waiting == {}
