"""The examples of docs/scale.md run as they stand."""

import doctest
from pathlib import Path


def test_the_page_about_scale_runs():
    page = Path(__file__).parents[1] / "docs" / "scale.md"
    outcome = doctest.testfile(str(page), module_relative=False)
    assert outcome.attempted > 8
    assert outcome.failed == 0
