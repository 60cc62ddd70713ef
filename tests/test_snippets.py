"""Every snippet of the documentation runs: examples with output, code without it, and commands."""

import doctest
import re
import shlex
import tomllib
import warnings
import webbrowser
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

import ravine
from ravine.cli import arguments
from tests.processes import run

ROOT = Path(__file__).parents[1]
PAGES = [
    *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md")),
    *sorted(path.name for path in ROOT.glob("*.md")),
]
LANGUAGES = {"python", "console", "text", "", "{toctree}"}
HELP_TEXTS = [
    arguments.help_of(add)[1] for add in (arguments.build_parser, arguments._add_fit, arguments._add_explore)
]
HELP_COMMANDS = sorted(
    {
        re.split("   +", line)[0].strip()
        for text in HELP_TEXTS
        for line in text.split("\n\n")[0].splitlines()[1:]
    }
)


def blocks(page, *languages):
    """The fenced blocks of a page in the given languages, except quotes of the source."""
    fence = re.compile(r"(<!-- from .* -->\n\n)?^```([^\n]*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
    found = fence.findall((ROOT / page).read_text())
    return [code for quoted, language, code in found if language in languages and not quoted]


def code_without_output(page):
    return [code for code in blocks(page, "python") if ">>> " not in code]


def overlap(A, B):
    """A kernel of strings: how many letters two of them share."""
    return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])


@pytest.mark.parametrize("page", PAGES)
def test_blocks_have_a_language_that_is_tested(page):
    found = set(re.findall(r"^```(\S+)$", (ROOT / page).read_text(), flags=re.MULTILINE))
    assert found <= LANGUAGES


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in (ROOT / page).read_text()])
def test_the_examples_of_a_page_hold(page):
    outcome = doctest.testfile(str(ROOT / page), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 2
    assert outcome.failed == 0


@pytest.mark.parametrize("page", [page for page in PAGES if code_without_output(page)])
def test_code_without_output_runs_as_it_is_written(page, tmp_path, monkeypatch, capsys):
    """The blocks of a page in turn, with the names that they take for given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(webbrowser, "open", lambda address: True)
    mpl.use("Agg")
    X, y = load_iris(return_X_y=True)
    names = {"ravine": ravine, "X": X, "y": y, "names": [f"row {i}" for i in range(150)]}
    names |= {"K": X @ X.T, "K_new": X[::7] @ X.T, "my_string_kernel": overlap}
    names |= {"list_of_strings": ["abc", "abd", "bcd", "xyz", "xyw", "yzw"] * 5}
    names |= {"model": ravine.MinimumDensity(2).fit(X), "frame": pd.DataFrame(X)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # iris has fewer valleys than a page asks for
        for code in code_without_output(page):
            exec(compile(code, page, "exec"), names)
    capsys.readouterr()


def test_the_front_page_shows_what_its_code_prints(capsys):
    """The block of Python, then the block of text that it prints."""
    front = (ROOT / "README.md").read_text()
    ((code, shown),) = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", front, flags=re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out == shown


# --- commands -----------------------------------------------------------------------------------------------


def commands_of(page):
    """The lines of a page's blocks for a terminal."""
    lines = [line.strip() for block in blocks(page, "console", "") for line in block.splitlines()]
    return [line.removeprefix("$ ") for line in lines if line]


def commands_in_sentences(page):
    """The commands and options in the running text of a page: `ravine fit --impute median`."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`ravine ([a-z]+)( [^`]*)?`", text)


def arguments_of(command):
    """The words after `ravine` in a line for a shell, which may read from a pipe or write to a file."""
    command = re.sub(r'^eval "\$\((.*)\)"$', r"\1", command.split("|")[-1].strip())
    words = shlex.split(command.split(">")[0], comments=True)
    assert words[0] == "ravine", command
    return words[1:]


def help_of(command, capsys):
    with pytest.raises(SystemExit):
        arguments.build_parser().parse_args([command, "--help"])
    return capsys.readouterr().out


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)])
def test_commands_of_a_page_are_understood(page):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    for command in commands_of(page):
        first, second, *others = shlex.split(command, comments=True)
        if first == "make":
            assert second in targets
        elif first == "pip":
            assert second == "install"
            assert re.fullmatch(r"ravine(\[\w+\])?", others[0])
            assert set(re.findall(r"\[(\w+)\]", command)) <= set(extras)
        else:
            arguments.build_parser().parse_args(arguments_of(command))


@pytest.mark.parametrize("page", [page for page in PAGES if commands_in_sentences(page)])
def test_options_in_the_sentences_of_a_page_exist(page, capsys):
    for command, others in commands_in_sentences(page):
        options = re.findall(r"(?<= )--?[a-z-]+", others)
        shown = help_of(command, capsys)
        assert [option for option in options if option not in shown] == [], command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the examples of --help name."""
    where = tmp_path_factory.mktemp("help")
    rng = np.random.default_rng(0)
    kind = np.arange(48) % 3
    frame = pd.DataFrame(rng.normal(size=(48, 3)) + 6 * np.eye(3)[kind], columns=["a", "b", "c"])
    frame.insert(0, "name", [f"n{i}" for i in range(48)])
    frame["customer"], frame["kind"] = frame["name"], [f"kind {k}" for k in kind]
    frame["city"], frame["date"] = np.where(np.arange(48) % 2, "Rome", "Oslo"), "2024-01-31"
    frame.to_csv(where / "data.csv", index=False)
    frame.to_csv(where / "new.csv", index=False)
    frame.to_parquet(where / "data.parquet")
    ravine.save(ravine.MinimumDensity(3).fit(frame[["a", "b", "c"]]), where / "model.ravine")
    return where


@pytest.mark.parametrize("command", [c for c in HELP_COMMANDS if not re.search("explore|demo", c)])
def test_examples_of_help_run(command, folder):
    """Others that wait for a browser are only understood, below."""
    words = arguments_of(command)
    words += ["--force"] * (words[0] == "fit")
    data = (folder / "data.csv").read_text() if "|" in command else ""
    done = run(*words, where=folder, data=data)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", HELP_COMMANDS)
def test_examples_of_help_are_understood(command):
    arguments.build_parser().parse_args(arguments_of(command))
