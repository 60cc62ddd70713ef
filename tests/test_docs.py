"""The documentation is true: its tables agree with the source, links lead to files, quotes are current."""

import ast
import dataclasses
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import ravine
from ravine.estimators.methods import CLUSTERERS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ravine"
PAGE = ROOT / "docs" / "defaults.md"
NOT_DEFAULTS = {"n_clusters", "n_directions"}  # numbers that were not chosen: the smallest tree, one line


# --- tables of the page -------------------------------------------------------------------------------------


def tables():
    """The rows of the page's tables by heading, without backticks."""
    found, heading = {}, ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| `"):
            found.setdefault(heading, []).append([cell.strip().strip("`") for cell in line.split("|")[1:-1]])
    return found


def test_every_parameter_has_a_meaning_and_a_source():
    for row in tables()["Parameters"]:
        assert len(row) == 5, row
        assert all(row), row


def defaults_of(name):
    """The defaults of a class: an estimator by its name, another class by its module and name."""
    if "." not in name:
        return getattr(ravine, name)().get_params()
    module, _, last = name.rpartition(".")
    fields = dataclasses.fields(getattr(importlib.import_module(f"ravine.{module}"), last))
    return {field.name: field.default for field in fields}


def test_parameters_have_their_current_defaults():
    for parameter, classes, value, *_ in tables()["Parameters"]:
        for name in classes.replace("`", "").split(", "):
            assert defaults_of(name)[parameter] == ast.literal_eval(value), (name, parameter)


@pytest.mark.parametrize("name", sorted([*CLUSTERERS, "MinimumDensityClassifier"]))
def test_every_numeric_default_of_an_estimator_is_on_the_page(name):
    listed = {
        parameter
        for parameter, classes, *_ in tables()["Parameters"]
        if name in classes.replace("`", "").split(", ")
    }
    numbers = {
        parameter
        for parameter, value in defaults_of(name).items()
        if isinstance(value, int | float | tuple) and not isinstance(value, bool)
    }
    assert numbers - NOT_DEFAULTS <= listed


# --- links and quotes ------------------------------------------------------------------------------------


def test_links_of_the_front_page_are_absolute_and_lead_to_files():
    """PyPI shows the page too, where relative links lead nowhere; the address is that of pyproject.toml."""
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    raw = source.replace("github.com", "raw.githubusercontent.com") + "/main"
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert links
    for link in links:
        path = re.sub(f"^(?:{source}/(?:blob|tree)/main|{raw})/", "", link)
        assert path != link, f"{link} is not an address of {source}"
        assert (ROOT / path).exists(), link


def test_images_are_small():
    assert [path.name for path in (ROOT / "docs" / "images").iterdir() if path.stat().st_size > 200_000] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "benchmarks"])
def test_links_and_paths_lead_to_files(page):
    place = ROOT / page
    for path in sorted(place.rglob("*.md")) if place.is_dir() else [place]:
        for link in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert link.startswith("http") or (path.parent / link).exists(), f"{path.name}: {link}"


def test_benchmarks_that_pages_name_are_there():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "RESULTS.md"]
    named = {
        name
        for page in [*pages, *(ROOT / "docs").glob("*.md")]
        for name in re.findall(r"benchmarks/(\w+)\.py", page.read_text())
    }
    assert named
    assert sorted(name for name in named if not (ROOT / "benchmarks" / f"{name}.py").exists()) == []


def test_sources_quote_headings_of_the_results():
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    headings = [line.lstrip("# ") for line in results.splitlines() if line.startswith("#")]
    quoted = {
        quote
        for rows in tables().values()
        for row in rows
        for quote in re.findall(r'`, "([A-Z][^"]+)"', row[-1])
    }
    assert quoted
    assert [q for q in sorted(quoted) if not any(h.startswith(q) for h in headings)] == []
