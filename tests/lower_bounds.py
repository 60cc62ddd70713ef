"""Prints the oldest versions that pyproject.toml declares, as constraints for pip."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
BOUND = re.compile(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)(?:;.*)?")  # a marker may follow


def declared():
    """Every package that the project or one of its extras needs, as declared; not what develops it."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    extras = [one for needed in project["optional-dependencies"].values() for one in needed]
    return [one for one in [*project["dependencies"], *extras] if not one.startswith(project["name"])]


def lower_bounds():
    """Return the least version of every declared package."""
    return dict(BOUND.fullmatch(one).groups() for one in declared())


def frames():
    """Return the oldest polars with which the tests are run: old scikit-learn does not know the new one."""
    develops = tomllib.loads(PROJECT.read_text())["dependency-groups"]["dev"]
    return dict(BOUND.fullmatch(one).groups() for one in develops if one.startswith("polars"))


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in {**lower_bounds(), **frames()}.items()))
