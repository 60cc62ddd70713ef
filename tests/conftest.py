"""The order of the tests."""

LONG = ("tests/test_processors.py",)  # single tests that take a minute


def pytest_collection_modifyitems(items):
    """Run long tests first, so that no process waits for the last test of another one."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
