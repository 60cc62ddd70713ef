"""The compiled loops; all else about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# Bits are the same on every x86-64 processor: no fused products, no fast-math. The other flags change no
# value: they let loops with square roots and comparisons use vectors. Modules are stripped.
QUIET = ["-Wno-unused-function", "-Wno-maybe-uninitialized"]
windows = sys.platform == "win32"
FLAGS = (
    ["/O2", "/fp:precise"]
    if windows
    else ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-g0", *QUIET]
)
LINK = ["-s"] if sys.platform == "linux" else []

sources = sorted(
    path.relative_to(Path(__file__).parent) for path in Path(__file__).parent.glob("src/**/*.pyx")
)
extensions = [
    Extension(
        ".".join(path.with_suffix("").parts[1:]),
        [str(path)],
        include_dirs=[str(path.parent)],
        depends=["src/ravine/data/wide.h"],
        extra_compile_args=FLAGS,
        extra_link_args=LINK,
    )
    for path in sources
]
jobs = os.cpu_count() or 1
setup(
    ext_modules=cythonize(
        extensions,
        build_dir="build/cython",
        nthreads=0 if windows else jobs,
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            "initializedcheck": False,
            "freethreading_compatible": True,
        },
    ),
    options={"build_ext": {"parallel": jobs}},
)
