"""The order of the tests, and threads in tests of few rows."""

import pytest

LONG = ("tests/test_processors.py",)  # single tests that take a minute


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
