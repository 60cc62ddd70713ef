"""The rules that the folders promise: imports point along the flow, and importing costs nothing."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ravine

SOURCE = Path(ravine.__file__).parent
FLOW = ["_validate", "data", "index", "optimize", "split", "tree", "view"]
ONE_PLACE = {
    "dask": {"data/dask_blocks.py"},
    "daqp": {"optimize/cutting_plane.py"},
    "matplotlib": {"view/plot.py"},
}
FILES = sorted(SOURCE.rglob("*.py"))


def imported(path):
    """Every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_along_the_flow(path):
    where = path.relative_to(SOURCE)
    stage = where.parts[0].removesuffix(".py")
    for module in imported(path):
        parts = module.split(".")
        if parts[0] == "ravine" and len(parts) > 1 and stage in FLOW and parts[1] in FLOW:
            assert FLOW.index(parts[1]) <= FLOW.index(stage), f"{where} imports {module}"
            if stage == "index" and parts[1] != "_validate":
                assert parts[1] == "index", f"{where} imports {module}: an index sees no data"
        if parts[0] in ONE_PLACE:
            assert str(where) in ONE_PLACE[parts[0]], f"{where} imports {module}"


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_loads_and_compiles_nothing():
    loaded = run("import sys, ravine; print('numba' in sys.modules, 'sklearn' in sys.modules)")
    assert loaded.split() == ["False", "False"]
    assert run("import sys; from ravine import *; print('numba' in sys.modules)").strip() == "False"


def test_importing_sets_no_global_state():
    code = (
        "import warnings, numpy as np, sklearn.cluster; np.random.seed(1); before = len(warnings.filters);"
        "state = np.random.get_state()[1].copy(); from ravine import *;"
        "print(before == len(warnings.filters), (state == np.random.get_state()[1]).all())"
    )
    assert run(code).split() == ["True", "True"]
