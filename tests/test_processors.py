"""Another processor, emulated, finds the same clusters: the short form of `make test-cpus`.

Only the one that differs most is tried here, because all code is compiled again for each.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.processors import environment
from benchmarks.robustness import ESTIMATORS
from sklearn.metrics import adjusted_rand_score

from tests.test_same_answer import ROWS

ROOT = Path(__file__).resolve().parent.parent
SETS = ("iris", "five groups and a far row")


def partitions():
    """Return the labels of every way to cluster, for the rows that show a difference soonest."""
    return {
        f"{way}, {rows}": ESTIMATORS[way](ROWS[rows][1]).fit(ROWS[rows][0]).labels_.tolist()
        for rows in SETS
        for way in ESTIMATORS
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_another_processor_finds_the_same_clusters():
    child = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.test_processors"],
        env=environment("nehalem"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    there = json.loads(child.stdout)
    for case, labels in partitions().items():
        assert adjusted_rand_score(labels, there[case]) >= 0.99, case


if __name__ == "__main__":
    print(json.dumps(partitions()))
