"""The commands and their options, and the help about them; importing this module takes no time."""

from __future__ import annotations

import argparse
import codecs
import csv
import inspect
import re
from collections.abc import Callable
from typing import Any, NoReturn

import ravine
from ravine.cli.errors import UsageError

# These lists repeat names that live in other modules, because importing those takes seconds and
# `ravine --help` should answer at once. A test compares them.
METHODS = {
    "auto": "AutoCluster",
    "minimum-density": "MinimumDensity",
    "spectral-connectivity": "SpectralConnectivity",
    "maximum-margin": "MaximumMargin",
    "maximin-separation": "MaximinSeparation",
    "principal-direction": "PrincipalDirection",
}
DIALECTS = ("duckdb", "sqlite", "postgres", "standard", "mysql", "bigquery", "mssql")

Options = argparse._ActionsContainer  # a parser, or a group of its options


class _Parser(argparse.ArgumentParser):
    """A parser that lets `main` decide how to show an error: as text, or as JSON."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def _value(expected: str, pattern: str, convert: Callable[[str], Any], **words: Any) -> Callable[[str], Any]:
    """Return a reader of option values: `words` have fixed meanings, other text must match and convert."""

    def read(text: str) -> Any:
        try:
            if text not in words and not re.fullmatch(pattern, text, re.ASCII | re.DOTALL):
                raise ValueError
            return words[text] if text in words else convert(text)
        except (ValueError, LookupError):
            raise argparse.ArgumentTypeError(f"expected {expected}, got {text!r}") from None

    return read


def _to_bytes(text: str) -> int:
    """Read a number of bytes; K, M, G and T are powers of 1024."""
    return int(text.rstrip("KMGT")) << 10 * (1 + "KMGT".find(text[-1]))


_clusters = _value("a whole number of at least 1, or auto", r"0*[1-9]\d*", int, auto="auto")
_count = _value("a whole number of at least 0", r"\d+", int)
_port = _value("a port from 0 to 65535", r"\d{1,5}", lambda text: range(65536)[int(text)])
_jobs = _value("a whole number that is not 0", r"-?0*[1-9]\d*", int)
_bytes = _value("a number of bytes such as 500M or 2G", r"0*[1-9]\d*[KMGT]?", _to_bytes)
_delimiter = _value("one character, or tab", r'[^"\r\n]', str, **{"tab": "\t", "\\t": "\t"})
_encoding = _value("the name of an encoding such as latin-1", ".+", lambda text: codecs.lookup(text).name)
_setting = _value("NAME=VALUE", r"[^\W\d]\w*=.*", lambda text: tuple(text.split("=", 1)))


def _names(text: str) -> list[str]:
    """Split column names at commas; a name that contains a comma is put in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def _add_positions(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the files that a command reads: "model", "data" or both, in this order."""
    if "model" in names:
        parser.add_argument("model", metavar="MODEL", help="a file written by 'ravine fit --model'")
    if "data" in names:
        parser.add_argument("data", metavar="FILE", help="input file; '-' is standard input")


def _add_flags(options: Options, *names: str) -> None:
    """Add flags that several commands share."""
    texts = {
        "json": "print the result, or the error, as JSON",
        "force": "overwrite existing files",
        "quiet": "print no notes and no progress",
    }
    for name in names:
        options.add_argument(f"--{name}", action="store_true", help=texts[name])


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reading").add_argument
    add("--id", metavar="COLUMN", help="column of row names: copied to the output, not used for clustering")
    add("--label", metavar="COLUMN", help="column of true classes: used only to score the clusters")
    add("--impute", choices=["median"], help="replace missing values by the median of their column")
    add("--delimiter", type=_delimiter, metavar="CHAR", help="field delimiter of text files, or tab")
    add("--skip", type=_count, default=0, metavar="N", help="lines to skip at the top of text files (0)")
    add("--encoding", type=_encoding, metavar="NAME", help="encoding of text files (default: UTF-8)")


def _add_columns(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("columns").add_argument
    add("--columns", type=_names, metavar="A,B", help="use only these columns")
    add("--exclude", type=_names, default=[], metavar="A,B", help="do not use these columns")


def _add_search(parser: argparse.ArgumentParser, *, method: bool = True) -> Options:
    """Add what decides the result; return the group of these options."""
    group = parser.add_argument_group("method")
    if method:
        text = "clustering method (default: minimum-density); auto tries several"
        group.add_argument("--method", choices=list(METHODS), default="minimum-density", help=text)
    text = "number of clusters; auto: as many as there are (default: auto)"
    group.add_argument("-k", "--clusters", type=_clusters, default="auto", metavar="N|auto", help=text)
    text = "seed of samples and random starts (0)"
    group.add_argument("--seed", type=_count, default=0, metavar="N", help=text)
    text = "threads (default: all cores); the result is the same"
    group.add_argument("--jobs", type=_jobs, metavar="N", help=text)
    return group


def _add_labels(options: Options, out: str) -> None:
    options.add_argument("--out", metavar="FILE", help=f"write the cluster of every row: {out}")
    options.add_argument("--append", metavar="FILE", help="like --out, with all columns of the input")
    options.add_argument("--proba", action="store_true", help="also write the membership in every cluster")


# The functions below add the options of a command. What --help says about the command is their docstring.


def _add_fit(fit: argparse.ArgumentParser) -> None:
    """Cluster the rows of a file and describe the clusters.

    examples:
      ravine fit data.csv                              also find the number of clusters
      ravine fit data.csv --clusters 5 --out labels.csv
      ravine fit data.csv --append clustered.csv --proba
      ravine fit data.csv --id name --exclude date,city --report report.html
      ravine fit data.csv --impute median
      ravine fit data.csv --method principal-direction --set threshold=density
      ravine fit data.csv --kernel diffusion --clusters 2
      ravine fit data.csv --kernel rbf --set "kernel_params={'gamma': 0.5}"
      zcat data.csv.gz | ravine fit - --json

    files:
      CSV and TSV (also compressed by gzip), Parquet, Arrow or Feather, NPY, whose columns are named
      x0, x1, ... Tables above 128 MB go through a temporary file (in $TMPDIR), so that memory use
      hardly grows with the number of rows.

    Text columns are left out with a note. Missing values ('', NA, NaN, null, none, ?) are an error
    unless --impute fills them in. No file is overwritten without --force.
    """
    _add_positions(fit, "data")
    add = _add_search(fit).add_argument
    add(
        "--kernel", metavar="NAME", help="split the feature space of a kernel, such as rbf: curved boundaries"
    )
    text = "another parameter of the method, such as bandwidth_factor=0.5; can be repeated"
    add("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help=text)
    _add_columns(fit)
    _add_reading(fit)
    add = fit.add_argument_group("large data").add_argument
    text = "memory for blocks of rows, such as 500M; data above an eighth stay on disk in every pass (1G)"
    add("--memory-limit", type=_bytes, metavar="SIZE", help=text)
    text = "save finished searches, so that the same command resumes an interrupted fit; deleted at the end"
    add("--checkpoint", metavar="FILE", help=text)
    group = fit.add_argument_group("writing")
    add = group.add_argument
    _add_labels(group, ".csv, .tsv, .parquet, or - (standard output)")
    add("--model", metavar="FILE", help="write the model, for 'ravine predict'")
    add("--report", metavar="FILE", help="write an HTML page that explains the clusters")
    add("--sql", metavar="FILE", help="write a SELECT that assigns the rows of a table to the clusters")
    add("--table", default="data", metavar="NAME", help="name of the table for --sql (data)")
    add("--dialect", choices=DIALECTS, default="duckdb", help="SQL dialect (duckdb)")
    _add_flags(group, "json", "force", "quiet")


def _add_predict(predict: argparse.ArgumentParser) -> None:
    """Assign the rows of another file to the clusters of a model."""
    _add_positions(predict, "model", "data")
    _add_labels(predict, ".csv, .tsv, .parquet (without any output: CSV on standard output)")
    predict.add_argument(
        "--report", metavar="FILE", help="write an HTML page about the clusters of these rows"
    )
    _add_reading(predict)
    _add_flags(predict, "force", "quiet")


def _add_compare(compare: argparse.ArgumentParser) -> None:
    """Run all methods on a file and rank them without labels."""
    _add_positions(compare, "data")
    _add_search(compare, method=False)
    _add_reading(compare)
    _add_columns(compare)
    _add_flags(compare, "json", "quiet")


def _add_show(show: argparse.ArgumentParser) -> None:
    """Print the tree, the columns and the parameters of a model."""
    _add_positions(show, "model")
    _add_flags(show, "json")


def _add_cut(cut: argparse.ArgumentParser) -> None:
    """Write a model with fewer clusters."""
    _add_positions(cut, "model")
    text = "number of clusters, fewer than the model has"
    cut.add_argument("-k", "--clusters", type=_count, required=True, metavar="N", help=text)
    cut.add_argument("-o", "--out", metavar="FILE", required=True, help="write the new model")
    _add_flags(cut, "force")


def _add_explore(explore: argparse.ArgumentParser) -> None:
    """Look at the clusters of a file, and edit them, in a browser.

    examples:
      ravine explore data.csv                          cluster the file, then open the page
      ravine explore model.ravine data.csv             start from a fitted model

    The page can be opened on this machine only, and its address contains a secret. Every action is
    saved, and the same command continues the work. Ctrl-C stops the explorer.
    """
    text = "input file; or a model written by 'ravine fit --model', then an input file"
    explore.add_argument("files", nargs="+", metavar="[MODEL] FILE", help=text)
    _add_search(explore)
    _add_columns(explore)
    _add_reading(explore)
    add = explore.add_argument_group("page").add_argument
    add("--session", metavar="FOLDER", help="folder in which the work is saved (default: FILE.explore)")
    add("--port", type=_port, default=0, metavar="N", help="port (default: any free one)")
    add("--no-browser", action="store_true", help="only print the address")
    _add_flags(explore, "quiet")


def _add_demo(demo: argparse.ArgumentParser) -> None:
    """Cluster the handwritten digits that ship with scikit-learn."""
    text = "path of the HTML page (default: in a temporary folder)"
    demo.add_argument("--report", metavar="FILE", help=text)
    _add_flags(demo, "force")


COMMANDS = {  # the module of each command, and what adds its options
    "fit": ("commands", _add_fit),
    "predict": ("model_commands", _add_predict),
    "show": ("model_commands", _add_show),
    "cut": ("model_commands", _add_cut),
    "compare": ("commands", _add_compare),
    "explore": ("explore_command", _add_explore),
    "demo": ("commands", _add_demo),
}


def build_parser() -> argparse.ArgumentParser:
    """ravine clusters data with hyperplanes that run through its ravines: the regions where rows are
    sparse. The splits form a tree that explains every cluster.

    examples:
      ravine demo                                      show how it works on built-in data
      ravine fit data.csv --out labels.csv --report report.html
      ravine fit data.parquet --clusters 8 --id customer --model model.ravine
      ravine predict model.ravine new.csv > labels.csv
      ravine show model.ravine
      ravine compare data.csv --label kind
      ravine explore data.csv                          look at the clusters and edit them in a browser

    exit codes:
      0  success      1  the data cannot be used      2  the command is wrong
      130  interrupted (Ctrl-C or SIGTERM)

    'ravine COMMAND --help' describes one command.
    """
    raw = argparse.RawDescriptionHelpFormatter
    text, epilog = help_of(build_parser)
    parser = _Parser(prog="ravine", description=text, epilog=epilog, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"ravine {ravine.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, add_options) in COMMANDS.items():
        text, epilog = help_of(add_options)
        summary = (text[0].lower() + text[1:]).rstrip(".")
        command = commands.add_parser(
            name, help=summary, description=text, epilog=epilog, formatter_class=raw
        )
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        add_options(command)
        words = [action.metavar or action.dest.upper() for action in command._get_positional_actions()]
        command.usage = " ".join(["ravine", name, *map(str, words), "[options]"])
    return parser


def help_of(add_options: Callable[..., Any]) -> tuple[str, str]:
    """Return what a command does, in one sentence, and the text below its options."""
    first, _, others = inspect.cleandoc(add_options.__doc__ or "").partition("\n\n")
    return first, others
