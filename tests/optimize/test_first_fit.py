import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ravine.optimize import first_fit

FIRST_FIT = """
import numpy as np
from ravine import MinimumDensity
from ravine.index.density_kernels import minimum, relative_depth
from ravine.optimize.pursuit_kernels import descend, pursue
X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([0.0, 9.0], 30)[:, None]
found = MinimumDensity(2).fit(X).labels_
print([sum(f.stats.cache_misses.values()) for f in (minimum, descend, pursue, relative_depth)])
print(sorted(np.bincount(found).tolist()))
"""


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.skipif(not first_fit.can_start(), reason="one processor")
def test_a_first_fit_compiles_half_and_finds_the_pursuit_on_disk(tmp_path):
    assert run(FIRST_FIT, NUMBA_CACHE_DIR=str(tmp_path)) == ["[1, 0, 0, 1]", "[30, 30]"]


@pytest.fixture
def begun():
    """The processes that a test starts; none is left behind."""
    first_fit.begin.cache_clear()
    before = first_fit._begun[:]
    first_fit._begun.clear()
    yield first_fit._begun
    first_fit.end()
    first_fit._begun[:] = before
    first_fit.begin.cache_clear()


def test_no_process_is_started_where_the_code_is_on_disk(begun, monkeypatch):
    monkeypatch.setattr(first_fit, "is_kept", lambda: True)
    first_fit.begin()
    assert begun == []


@pytest.mark.parametrize("program", [None, "", "/usr/sbin/uwsgi", "/opt/app/viewer.exe"])
def test_no_process_is_started_by_an_application_that_embeds_python(begun, monkeypatch, program):
    monkeypatch.setattr(first_fit, "is_kept", lambda: False)
    monkeypatch.setattr(sys, "executable", program)
    first_fit.begin()
    assert begun == []


@pytest.mark.parametrize("name", ["python3.12", "Python", "pythonw.exe"])
def test_every_name_of_the_interpreter_is_known(monkeypatch, name):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(sys, "executable", f"/opt/{name}")
    assert first_fit.can_start()


def test_no_process_is_started_on_one_processor(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    assert not first_fit.can_start()


def test_a_process_that_cannot_start_or_fails_is_no_error(begun, monkeypatch):
    first_fit.start("no_such_function")
    assert len(begun) == 1
    first_fit.wait()
    assert begun[0].returncode == 1
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    first_fit.start("compile_pursuit")
    assert len(begun) == 1


def test_several_threads_may_wait(begun):
    begun += [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"]) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        for waited in [pool.submit(first_fit.wait) for _ in range(4)]:
            waited.result()
    assert [process.returncode for process in begun] == [0, 0]


def test_a_process_that_never_ends_is_ended(begun, monkeypatch):
    monkeypatch.setattr(first_fit, "PATIENCE", 0.1)
    begun.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"]))
    first_fit.wait()
    assert begun[0].wait(10) != 0


def test_processes_end_with_this_one(begun, monkeypatch):
    monkeypatch.setattr(first_fit, "is_kept", lambda: False)
    monkeypatch.setattr(first_fit, "can_start", lambda: True)
    first_fit.begin()
    first_fit.begin()
    started = list(begun)
    assert len(started) == 1
    monkeypatch.setattr(first_fit, "compile_ends", lambda: pytest.fail("compiles although the program ends"))
    first_fit.end()
    assert begun == started
    assert all(process.returncode not in (None, 0) for process in started)


def test_code_older_than_its_source_is_not_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert not first_fit.is_kept()
    index = tmp_path / "optimize_1" / "pursuit_kernels.pursue-1.py311.nbi"
    index.parent.mkdir()
    index.touch()
    assert first_fit.is_kept()
    written = Path(first_fit.__file__).with_name("pursuit_kernels.py").stat().st_mtime
    os.utime(index, (written - 1, written - 1))
    assert not first_fit.is_kept()


CACHES = """
from pathlib import Path
from ravine.optimize import first_fit
source = Path(first_fit.__file__).with_name("pursuit_kernels.py")
if {locked}:
    first_fit.os.access = lambda path, mode: False
found = first_fit._cache_of(source)
from ravine.optimize.pursuit_kernels import pursue
print(Path(pursue.stats.cache_path).is_relative_to(found))
"""


@pytest.mark.parametrize("locked", [True, False])
@pytest.mark.parametrize("environment", [{}, {"NUMBA_CACHE_DIR": "given"}])
def test_numba_keeps_code_where_it_is_looked_for(locked, environment, tmp_path):
    given = {name: str(tmp_path / value) for name, value in environment.items()} or {"NUMBA_CACHE_DIR": ""}
    assert run(CACHES.format(locked=locked), **given) == ["True"]
