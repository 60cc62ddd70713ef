"""What is declared is true: lower bounds, and a wheel that works in a clean environment."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.lower_bounds import declared, lower_bounds

ROOT = Path(__file__).parents[1]


def test_every_dependency_declares_a_lower_bound():
    assert len(lower_bounds()) == len(declared())
    assert lower_bounds()["scipy"] == "1.12"  # `sparse.diags_array`
    assert lower_bounds()["threadpoolctl"] == "3.5"  # the first that sees the BLAS of today's wheels


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_of_the_sdist_runs_the_demo_in_a_clean_environment(tmp_path):
    """Builds both, installs the wheel with its dependencies, and runs `ravine demo` as a user would."""
    tools, clean = tmp_path / "tools", tmp_path / "clean"
    for folder in (tools, clean):
        run(sys.executable, "-m", "venv", folder)
    run(tools / "bin" / "pip", "install", "--quiet", "build")
    run(
        tools / "bin" / "python", "-m", "build", "--outdir", tmp_path / "dist", ROOT
    )  # the sdist, then its wheel
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert len(list((tmp_path / "dist").glob("*.tar.gz"))) == 1
    names = zipfile.ZipFile(wheel).namelist()
    assert {"ravine/py.typed", "ravine/view/report.css"} <= set(names)
    assert all(name.startswith(("ravine/", "ravine-")) for name in names)
    run(clean / "bin" / "pip", "install", "--quiet", wheel)
    elsewhere = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    shown = run(clean / "bin" / "ravine", "demo", "--report", "page.html", cwd=tmp_path, env=elsewhere)
    assert "1797 handwritten digits" in shown
    assert "cluster 9" in shown
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(f"{i % 2 * 9 + i / 90},{i % 7}" for i in range(60)))
    assert (
        "2 columns of t.csv"
        in subprocess.run(
            [clean / "bin" / "ravine", "fit", "t.csv"],
            cwd=tmp_path,
            env=elsewhere,
            capture_output=True,
            text=True,
        ).stderr
    )
