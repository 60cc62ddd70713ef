"""The commands and their options, and the help about them; importing this module takes no time."""

from __future__ import annotations

import argparse
import codecs
import csv
import re
from collections.abc import Callable
from typing import Any, NoReturn

import ravine
from ravine.cli.errors import UsageError

# These lists repeat names that live in other modules, because importing those takes seconds and
# `ravine --help` should answer at once. A test compares them.
METHODS = {
    "minimum-density": "MinimumDensity",
    "spectral-connectivity": "SpectralConnectivity",
    "maximum-margin": "MaximumMargin",
    "maximin-separation": "MaximinSeparation",
    "principal-direction": "PrincipalDirection",
}
FORMATS = ("csv", "tsv", "jsonl", "parquet", "arrow", "npy", "npz")
DIALECTS = ("duckdb", "sqlite", "postgres", "standard", "mysql", "bigquery", "mssql")
SHELLS = ("bash", "zsh", "fish")
KERNELS = (
    *("rbf", "diffusion", "polynomial", "poly", "cosine", "laplacian", "sigmoid", "linear"),
    *("chi2", "additive_chi2", "precomputed"),
)

DESCRIPTION = """\
ravine clusters data with hyperplanes that run through its ravines: the regions where rows are
sparse. The splits form a tree that explains every cluster.
"""

EPILOG = """\
examples:
  ravine demo                                      show how it works, on built-in data
  ravine fit data.csv --out labels.csv --report report.html
  ravine fit data.parquet --clusters 8 --id customer --model model.ravine
  ravine predict model.ravine new.csv > labels.csv
  ravine compare data.csv --label kind

exit codes:
  0  success      1  the data cannot be used      2  the command cannot be carried out as given
  130  interrupted (Ctrl-C)      143  terminated by SIGTERM

'ravine COMMAND --help' describes one command.
"""

FIT_EPILOG = """\
examples:
  ravine fit data.csv                              find the number of clusters as well
  ravine fit data.csv --clusters 5 --out labels.csv
  ravine fit data.csv --id name --exclude date,city --report report.html
  ravine fit data.csv --impute median --one-hot all
  ravine fit data.csv --method principal-direction --set threshold=density
  ravine fit data.csv --kernel diffusion --clusters 2
  ravine fit data.csv --kernel rbf --gamma 0.5 --components 0.9
  zcat data.csv.gz | ravine fit - --json

files:
  CSV, TSV, JSON lines (also gzipped), Parquet, Arrow or Feather, NPY, NPZ; '-' is standard input.
  The format is detected from the first bytes, then from the name. In an NPZ file, the rows are the
  matrix named X or the only matrix; its vectors can serve as --label or --id. Columns of a matrix
  are named x0, x1, ... Tables above 128 MB go through a temporary file (in $TMPDIR), so that memory
  use does not grow with the number of rows.

Text columns are left out with a note. Missing values ('', NA, NaN, null, none, ?) are an error
unless --impute fills them in. No file is overwritten without --force.
"""

COMPLETION_EPILOG = """\
examples:
  source <(ravine completion bash)                 in ~/.bashrc
  source <(ravine completion zsh)                  in ~/.zshrc, after compinit
  ravine completion fish > ~/.config/fish/completions/ravine.fish
"""

Options = argparse._ActionsContainer  # a parser, or a group of its options


class _Parser(argparse.ArgumentParser):
    """A parser that lets `main` decide how to show an error: as text, or as JSON."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, self.format_usage())


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


_clusters = _value("a whole number of at least 1, or auto", r"0*[1-9]\d*", int, auto="auto")
_seed = _value("a whole number of at least 0", r"\d+", int)
_jobs = _value("a whole number that is not 0", r"-?0*[1-9]\d*", int)
_gamma = _value("a number above 0, or auto", ".+", float, auto="auto")
_landmarks = _value("a whole number, auto or all", r"\d+", int, auto="auto", all=None)
_share = "a whole number, a share such as 0.9, or all"
_components = _value(_share, ".+", lambda text: int(text) if text.isdigit() else float(text), all=None)
_delimiter = _value("one character, or tab", r'[^"\r\n]', str, **{"tab": "\t", "\\t": "\t"})
_encoding = _value("the name of an encoding such as latin-1", ".+", lambda text: codecs.lookup(text).name)
_setting = _value("NAME=VALUE", r"[^\W\d]\w*=.*", lambda text: tuple(text.split("=", 1)))


def _names(text: str) -> list[str]:
    """Split column names at commas; a name that contains a comma is put in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def _add_files(options: Options, *, model: bool = False) -> None:
    if model:
        options.add_argument("model", metavar="MODEL", help="a file written by 'ravine fit --model'")
    options.add_argument("data", metavar="FILE", help="the rows; '-' is standard input")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reading").add_argument
    add("--id", metavar="COLUMN", help="names of the rows, copied to the output and not used to cluster")
    add("--label", metavar="COLUMN", help="true classes, used only to score the clusters")
    add("--impute", choices=["median"], help="fill in missing values with the median of their column")
    add("--format", choices=FORMATS, help="the format of the file (default: detected)")
    add("--delimiter", type=_delimiter, metavar="CHAR", help="separates the fields of text (or: tab)")
    add("--encoding", type=_encoding, metavar="NAME", help="of text, such as latin-1 (default: UTF-8)")


def _add_columns(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("columns").add_argument
    add("--columns", type=_names, metavar="A,B", help="cluster by these columns only")
    add("--exclude", type=_names, default=[], metavar="A,B", help="leave these columns out")
    text = "encode these text columns, with one indicator per value; 'all' encodes all"
    add("--one-hot", type=_names, default=[], metavar="A,B", help=text)


def _add_running(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("running").add_argument
    add("--seed", type=_seed, default=0, metavar="N", help="seed of samples and random starts (0)")
    add("--jobs", type=_jobs, metavar="N", help="threads (default: all cores); they do not change the result")


def _add_clusters(options: Options) -> None:
    text = "how many; auto stops where no valley is deeper than chance explains (auto)"
    options.add_argument("--clusters", type=_clusters, default="auto", metavar="N|auto", help=text)


def _add_overwriting(options: Options) -> None:
    options.add_argument("--force", action="store_true", help="overwrite existing files")
    options.add_argument("--quiet", action="store_true", help="print nothing except errors")


def _add_method(fit: argparse.ArgumentParser) -> None:
    group = fit.add_argument_group("method")
    add = group.add_argument
    add("--method", choices=list(METHODS), default="minimum-density", help="(minimum-density)")
    _add_clusters(group)
    text = "another parameter of the method, such as bandwidth_factor=0.5; can be repeated"
    add("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help=text)
    add = fit.add_argument_group("kernel").add_argument
    add("--kernel", choices=KERNELS, help="split in the feature space of a kernel: curved boundaries")
    absent = argparse.SUPPRESS  # so that an option that was not given can be recognized
    add("--gamma", type=_gamma, default=absent, metavar="X|auto", help="how fast similarity falls (auto)")
    text = "dimensions of the feature space: a number, or a share of the variance (all)"
    add("--components", type=_components, default=absent, metavar="N|SHARE|all", help=text)
    text = "rows that define the feature space (auto: all if there are few)"
    add("--landmarks", type=_landmarks, default=absent, metavar="N|auto|all", help=text)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    _add_files(fit)
    _add_method(fit)
    _add_columns(fit)
    _add_reading(fit)
    _add_running(fit)
    group = fit.add_argument_group("writing")
    add = group.add_argument
    add("--out", metavar="FILE", help="the cluster of every row: .csv, .tsv, .parquet, or - for CSV")
    add("--model", metavar="FILE", help="the model, for 'ravine predict' and 'ravine report'")
    add("--report", metavar="FILE", help="a page that explains the clusters (HTML)")
    add("--sql", metavar="FILE", help="a SELECT that computes the cluster of every row of a table")
    add("--table", default="data", metavar="NAME", help="the table for --sql (data)")
    add("--dialect", choices=DIALECTS, default="duckdb", help="the SQL dialect (duckdb)")
    add("--json", action="store_true", help="print the result, or the error, as JSON")
    text = "if Ctrl-C ends the fit, write the clusters found so far (default: write nothing)"
    add("--save-partial", action="store_true", help=text)
    _add_overwriting(group)


def _add_predict(predict: argparse.ArgumentParser) -> None:
    _add_files(predict, model=True)
    text = ".csv, .tsv or .parquet (default: -, CSV to standard output)"
    predict.add_argument("--out", metavar="FILE", default="-", help=text)
    _add_reading(predict)
    _add_overwriting(predict)


def _add_report(report: argparse.ArgumentParser) -> None:
    _add_files(report, model=True)
    report.add_argument("--out", metavar="FILE", default="report.html", help="the page (report.html)")
    report.add_argument("--title", metavar="TEXT", help="the heading of the page")
    _add_reading(report)
    _add_overwriting(report)


def _add_compare(compare: argparse.ArgumentParser) -> None:
    _add_files(compare)
    _add_clusters(compare)
    compare.add_argument("--json", action="store_true", help="print the ranking, or the error, as JSON")
    _add_reading(compare)
    _add_columns(compare)
    _add_running(compare)
    compare.add_argument("--quiet", action="store_true", help="print only the ranking and errors")


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "--report", metavar="FILE", help="the path of the page (default: in a temporary folder)"
    )
    demo.add_argument("--force", action="store_true", help="overwrite an existing page")


def _add_completion(completion: argparse.ArgumentParser) -> None:
    completion.add_argument("shell", choices=SHELLS)


COMMANDS: dict[str, tuple[str, str | None, Callable[[argparse.ArgumentParser], None]]] = {
    "fit": ("cluster the rows of a file and describe the clusters", FIT_EPILOG, _add_fit),
    "predict": ("assign the rows of another file to the clusters of a model", None, _add_predict),
    "report": ("write a page about a model and the rows of a file", None, _add_report),
    "compare": ("run all methods on a file and rank them without labels", None, _add_compare),
    "demo": ("cluster the handwritten digits that ship with scikit-learn", None, _add_demo),
    "completion": ("print a script for completion in a shell", COMPLETION_EPILOG, _add_completion),
}


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = _Parser(prog="ravine", description=DESCRIPTION, epilog=EPILOG, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"ravine {ravine.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (summary, epilog, add_options) in COMMANDS.items():
        text = summary[0].upper() + summary[1:] + "."
        command = commands.add_parser(
            name, help=summary, description=text, epilog=epilog, formatter_class=raw
        )
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        add_options(command)
    return parser
