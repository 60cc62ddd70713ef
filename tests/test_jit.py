"""How loops are compiled, with numba's own compiler and with this package's."""

import os
import subprocess
import sys

import numpy as np
import pytest

from ravine import _jit
from ravine.index.density_kernels import relative_depth

DEPTH = """
import numba, numpy as np
numba.version_info = numba.version_info._replace(short={version})
from ravine.index.density_kernels import log_density, relative_depth
print(relative_depth(np.array([-1.0, -0.9, 0.9, 1.0]), np.ones(4), 4.0, 0.3, 0.0))
print(relative_depth._compiler.pipeline_class.__module__, log_density._compiler.pipeline_class.__module__)
"""


@pytest.mark.parametrize(
    ("version", "module"), [(_jit.NEWEST, "ravine._compiler"), ((99, 0), "numba.core.compiler")]
)
def test_a_newer_numba_compiles_the_same_by_itself(version, module, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DEPTH.format(version=version)],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    found, compilers = done.stdout.splitlines()
    assert float(found) == relative_depth(np.array([-1.0, -0.9, 0.9, 1.0]), np.ones(4), 4.0, 0.3, 0.0) > 0.9
    assert compilers.split() == [module, module]
