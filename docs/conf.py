"""The site of `make docs`: the pages here, the gallery from ../examples, and the API of ravine.__all__."""

from __future__ import annotations

import inspect
import tomllib
import warnings
from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

import ravine
from ravine import metrics, papers
from ravine.view import plot

ROOT = Path(__file__).parents[1]
RESULTS = (
    "ravine.split.split.Split",
    "ravine.split.split.Evidence",
    "ravine.split.boundary.Hyperplane",
    "ravine.view.check.DataCheck",
    "ravine.view.check.Finding",
)
SHARED = ("ravine.estimators.clusterer.TreeClusterer", "ravine.estimators.base.RowsEstimator")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCE = PROJECT["urls"]["Source"] + "/blob/main/"

project, author, release = "ravine", "the ravine developers", ravine.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["templates"]
suppress_warnings = ["ref.ref"]  # docstrings inherited from scikit-learn refer to pages of its site
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"  # types are in the docstrings
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"
html_title = "ravine"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_theme_options = {
    "github_url": PROJECT["urls"]["Source"],
    "show_toc_level": 2,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
}
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 1,
    "download_all_examples": False,
}
warnings.filterwarnings("ignore", category=UserWarning, message="FigureCanvasAgg is non-interactive")


def public() -> dict[str, list[str]]:
    """Return the public names by section of the API reference."""
    sections: dict[str, list[str]] = {
        title: [] for title in ("Estimators", "Functions", "Other classes", "Exceptions and warnings")
    }
    for name in sorted({*ravine.__all__, "open"}):
        member = getattr(ravine, name)
        if not inspect.isclass(member):
            section = "Functions"
        elif issubclass(member, BaseException):
            section = "Exceptions and warnings"
        else:
            section = "Estimators" if hasattr(member, "fit") else "Other classes"
        sections[section].append(f"ravine.{name}")
    sections["Shared parameters and attributes"] = list(SHARED)
    sections["The papers' methods"] = [f"ravine.papers.{name}" for name in papers.__all__]
    sections["Parts of results"] = list(RESULTS)
    for title, module in {"Metrics": metrics, "Plots": plot}.items():
        sections[title] = [f"{module.__name__}.{name}" for name, _ in inspect.getmembers(module, own(module))]
    return sections


def own(module: Any) -> Any:
    """Return a test for the public functions of a module: those of `__all__`, if there is one."""
    return lambda member: (
        inspect.isfunction(member)
        and member.__module__ == module.__name__
        and not member.__name__.startswith("_")
        and member.__name__ in getattr(module, "__all__", [member.__name__])
    )


def write_api() -> None:
    """Write the page of the API reference, from which autosummary makes one page per name."""
    text = "API reference\n=============\n"
    for title, names in public().items():
        listed = "\n".join(f"   {name}" for name in names)
        template = (
            "   :template: class.rst\n"
            if title not in ("Functions", "Exceptions and warnings", "Metrics", "Plots")
            else ""
        )
        text += f"\n{title}\n{'-' * len(title)}\n\n.. autosummary::\n   :toctree: .\n{template}\n{listed}\n"
    folder = Path(__file__).parent / "api"
    folder.mkdir(exist_ok=True)
    (folder / "index.rst").write_text(text)


def link_to_the_repository(app: Any, name: str, content: list[str]) -> None:
    """Turn links to files of the repository that are not pages into links to the project."""
    up = "../" * (name.count("/") + 1)
    content[0] = content[0].replace(f"]({up}", f"]({SOURCE}")


def write_math(page: Any, node: Any) -> None:
    """Write a formula as MathML, which browsers show without a script and without network."""
    display = "inline" if node.tagname == "math" else "block"
    formula = "\n".join(line for line in node.astext().splitlines() if line.strip())
    page.body.append(convert(formula, display=display))
    raise SkipNode


def setup(app: Any) -> None:
    """Connect the above to Sphinx."""
    write_api()
    app.connect("source-read", link_to_the_repository)
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
