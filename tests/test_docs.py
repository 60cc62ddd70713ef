"""The documentation is true: its tables agree with the source, links lead to files, quotes are current."""

import ast
import dataclasses
import importlib
import re
import tomllib
from pathlib import Path

import pytest

import ravine
from ravine.estimators.catalog import ESTIMATORS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ravine"
PAGE = ROOT / "docs" / "defaults.md"
NOT_DEFAULTS = {"n_clusters", "verbose"}  # numbers that were not chosen: the smallest tree, and no output


# --- constants of the source --------------------------------------------------------------------------------


def is_number(value):
    """Whether an expression is made of numbers and other constants only."""
    for part in ast.walk(value):
        if isinstance(part, ast.Constant) and not isinstance(part.value, int | float):
            return False
        if isinstance(part, ast.Call | ast.Dict) or (isinstance(part, ast.Name) and not part.id.isupper()):
            return False
    return True


def assigned(statement):
    """The (name, expression) pairs of an assignment."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return [(statement.target, statement.value)]
    if not isinstance(statement, ast.Assign):
        return []
    (target,) = statement.targets
    if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
        return list(zip(target.elts, statement.value.elts, strict=True))
    return [(target, statement.value)]


def constants():
    """Every module constant by (file, name): its value as an expression, or None where it is not a number."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for statement in ast.parse(path.read_text()).body:
            for target, value in assigned(statement):
                if isinstance(target, ast.Name) and re.fullmatch("_?[A-Z][A-Z0-9_]+", target.id):
                    where = str(path.relative_to(SOURCE)), target.id
                    found[where] = ast.unparse(value) if is_number(value) else None
    return found


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


def page_constants():
    """The constants on the page by (file, name), as `constants` has them."""
    found = {}
    for heading, rows in tables().items():
        for row in rows if not heading.startswith("Parameters") else []:
            listed_only = heading.startswith("Texts")
            found[row[1], row[0]] = None if listed_only else ast.unparse(ast.parse(row[2], mode="eval").body)
    return found


def test_every_constant_is_on_the_page_and_none_is_gone():
    assert sorted(page_constants()) == sorted(constants())


def test_constants_have_their_current_values():
    ours, listed = constants(), page_constants()
    assert {where: listed.get(where) for where in ours} == ours


def test_every_constant_has_a_meaning_and_a_source():
    for heading, rows in tables().items():
        for row in rows:
            assert len(row) == (3 if heading.startswith("Texts") else 5), row
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


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
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


def test_the_tutorial_shows_the_real_source():
    """Code after `<!-- from PATH -->` is a part of that file, word for word."""
    text = (ROOT / "docs" / "add-an-index.md").read_text()
    quotes = re.findall(r"<!-- from (\S+) -->\n\n```python\n(.*?)```", text, flags=re.DOTALL)
    assert quotes
    for path, code in quotes:
        assert code.strip() in (ROOT / path).read_text(), f"{path} has changed: quote it again"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs", "benchmarks"])
def test_links_and_paths_lead_to_files(page):
    place = ROOT / page
    for path in sorted(place.rglob("*.md")) if place.is_dir() else [place]:
        for link in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            assert link.startswith("http") or (path.parent / link).exists(), f"{path.name}: {link}"


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
