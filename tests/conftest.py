"""The order of the tests, threads in tests of few rows, and a check that the compiled loops are current."""

from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import ravine

LONG = ("tests/test_processors.py",)  # starts processes, which take seconds


def pytest_configure():
    """Refuse to test compiled loops that are older than their sources."""
    package = Path(ravine.__file__).parent
    sources = [path for path in package.rglob("*") if path.suffix in (".pyx", ".pxd", ".h")]
    modules = [path for path in package.rglob("*") if path.name.endswith(EXTENSION_SUFFIXES[0])]
    for source in sources if modules else []:
        # what modules share is compiled into some of them, its own module aside
        built = [
            path for path in modules if source.suffix != ".pyx" or path.name.split(".")[0] == source.stem
        ]
        if max((path.stat().st_mtime for path in built), default=0.0) < source.stat().st_mtime:
            raise pytest.UsageError(f"{source} was edited after it was compiled: run make .venv/loops")


def pytest_collection_modifyitems(items):
    """Run long tests first, so that no process waits for the last test of another one."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


@pytest.fixture(autouse=True, scope="session")
def threads_share_small_passes():
    """Let threads share the passes over the few rows of a test, as they do those over many rows."""
    from ravine.data import memory

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "THREADED_VALUES", 0)
        yield
