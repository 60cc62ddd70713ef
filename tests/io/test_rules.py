"""Rules of the folder io: it can be used from Python, so its messages name no option of the command line."""

import ast
import re
from pathlib import Path

import pytest

import ravine

SOURCE = Path(ravine.__file__).parent
FILES = sorted((SOURCE / "io").glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_message_names_an_option(path):
    texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    assert [text for text in texts if isinstance(text, str) and re.search(r"--[a-z]", text)] == []


def test_pyarrow_is_imported_in_one_module():
    found = [path for path in SOURCE.rglob("*.py") if re.search(r"(?:from|import) pyarrow", path.read_text())]
    assert found == [SOURCE / "io" / "arrow_files.py"]
