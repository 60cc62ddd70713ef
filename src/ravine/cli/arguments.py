"""The commands and their options, and the help about them; importing this module takes no time."""

from __future__ import annotations

import argparse
import codecs
import csv
import difflib
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
  ravine demo                                      show how it works on built-in data
  ravine fit data.csv --out labels.csv --report report.html
  ravine fit data.parquet --clusters 8 --id customer --model model.ravine
  ravine predict model.ravine new.csv > labels.csv
  ravine show model.ravine
  ravine compare data.csv --label kind
  ravine explore data.csv                          look at the clusters and edit them in a browser

exit codes:
  0  success      1  the data cannot be used      2  the command is wrong
  130  interrupted (Ctrl-C)      143  terminated by SIGTERM

'ravine COMMAND --help' describes one command.
"""

FIT_EPILOG = """\
examples:
  ravine fit data.csv                              also find the number of clusters
  ravine fit data.csv --clusters 5 --out labels.csv
  ravine fit data.csv --append clustered.csv --proba
  ravine fit data.csv --id name --exclude date,city --report report.html
  ravine fit data.csv --impute median --one-hot all
  ravine fit data.csv --method principal-direction --set threshold=density
  ravine fit data.csv --kernel diffusion --clusters 2
  ravine fit data.csv --kernel rbf --gamma 0.5 --components 0.9
  zcat data.csv.gz | ravine fit - --json

files:
  CSV, TSV, JSON (also compressed by gzip, bzip2 or xz), Parquet, Arrow or Feather, NPY, NPZ.
  The format is detected from the first bytes, then from the name. In an NPZ file, the rows are the
  matrix named X or the only matrix; its vectors can serve as --label or --id. Columns of a matrix
  are named x0, x1, ... Tables above 128 MB go through a temporary file (in $TMPDIR), so that memory
  use hardly grows with the number of rows.

Text columns are left out with a note. Missing values ('', NA, NaN, null, none, ?) are an error
unless --impute fills them in. No file is overwritten without --force.
"""

EXPLORE_EPILOG = """\
examples:
  ravine explore data.csv                          cluster the file, then open the page
  ravine explore model.ravine data.csv             start from a fitted model

The page can be opened on this machine only, and its address contains a secret. Every action is
saved, and the same command continues the work. Ctrl-C stops the explorer.
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
    size = int(text.rstrip("KMGT")) << 10 * (1 + "KMGT".find(text[-1]))
    if size < 1 << 20:
        raise ValueError
    return size


_clusters = _value("a whole number of at least 1, auto or best", r"0*[1-9]\d*", int, auto="auto", best="best")
_number = _value("a whole number of at least 1", r"0*[1-9]\d*", int)
_count = _value("a whole number of at least 0", r"\d+", int)
_port = _value("a port from 0 to 65535", r"\d{1,5}", lambda text: range(65536)[int(text)])
_jobs = _value("a whole number that is not 0", r"-?0*[1-9]\d*", int)
_gamma = _value("a number above 0, or auto", ".+", float, auto="auto")
_landmarks = _value("a whole number, auto or all", r"\d+", int, auto="auto", all=None)
_share = "a whole number, a share such as 0.9, or all"
_components = _value(_share, ".+", lambda text: int(text) if text.isdigit() else float(text), all=None)
_bytes = _value("a number of bytes such as 500M or 2G, at least 1M", r"0*[1-9]\d*[KMGT]?", _to_bytes)
_delimiter = _value("one character, or tab", r'[^"\r\n]', str, **{"tab": "\t", "\\t": "\t"})
_encoding = _value("the name of an encoding such as latin-1", ".+", lambda text: codecs.lookup(text).name)
_setting = _value("NAME=VALUE", r"[^\W\d]\w*=.*", lambda text: tuple(text.split("=", 1)))


def _names(text: str) -> list[str]:
    """Split column names at commas; a name that contains a comma is put in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def _add_files(options: Options, *, model: bool = False) -> None:
    if model:
        _add_model(options)
    options.add_argument("data", metavar="FILE", help="input file; '-' is standard input")


def _add_model(options: Options) -> None:
    options.add_argument("model", metavar="MODEL", help="a file written by 'ravine fit --model'")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("reading").add_argument
    add("--id", metavar="COLUMN", help="column of row names: copied to the output, not used for clustering")
    add("--label", metavar="COLUMN", help="column of true classes: used only to score the clusters")
    add("--impute", choices=["median"], help="replace missing values by the median of their column")
    add("--format", choices=FORMATS, help="format of the file (default: detected)")
    add("--delimiter", type=_delimiter, metavar="CHAR", help="field delimiter of text files, or tab")
    add("--decimal", choices=[".", ","], help="decimal sign in text files (default: detected)")
    add("--skip", type=_count, default=0, metavar="N", help="lines to skip at the top of text files (0)")
    add("--encoding", type=_encoding, metavar="NAME", help="encoding of text files (default: UTF-8)")


def _add_columns(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("columns").add_argument
    add("--columns", type=_names, metavar="A,B", help="use only these columns")
    add("--exclude", type=_names, default=[], metavar="A,B", help="do not use these columns")
    text = "encode these text columns, with one indicator column per value; 'all' encodes all of them"
    add("--one-hot", type=_names, default=[], metavar="A,B", help=text)


def _add_running(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("running").add_argument
    add("--seed", type=_count, default=0, metavar="N", help="seed of samples and random starts (0)")
    add("--jobs", type=_jobs, metavar="N", help="threads (default: all cores); the result is the same")


def _add_clusters(options: Options) -> None:
    text = "number of clusters; auto: only significant splits, best: an estimate (default: auto)"
    options.add_argument("-k", "--clusters", type=_clusters, default="auto", metavar="N|auto|best", help=text)


def _add_overwriting(options: Options) -> None:
    options.add_argument("--force", action="store_true", help="overwrite existing files")
    options.add_argument("--quiet", action="store_true", help="print no notes and no progress")


def _add_labels(options: Options, out: str) -> None:
    options.add_argument("--out", metavar="FILE", help=out)
    text = "like --out, with all columns of the input"
    options.add_argument("--append", metavar="FILE", help=text)
    options.add_argument("--proba", action="store_true", help="also write the membership in every cluster")


def _add_method(fit: argparse.ArgumentParser) -> None:
    group = fit.add_argument_group("method")
    add = group.add_argument
    add(
        "--method",
        choices=list(METHODS),
        default="minimum-density",
        help="clustering method (default: minimum-density); auto tries several",
    )
    _add_clusters(group)
    text = "another parameter of the method, such as bandwidth_factor=0.5; can be repeated"
    add("--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help=text)
    add = fit.add_argument_group("kernel").add_argument
    add("--kernel", choices=KERNELS, help="split the feature space of a kernel: curved boundaries")
    absent = argparse.SUPPRESS  # so that an option that was not given can be recognized
    add("--gamma", type=_gamma, default=absent, metavar="X|auto", help="how fast the kernel falls (auto)")
    text = "dimensions of the feature space: a number, or a share of the variance (all)"
    add("--components", type=_components, default=absent, metavar="N|SHARE|all", help=text)
    text = "rows that define the feature space (auto: all if there are few)"
    add("--landmarks", type=_landmarks, default=absent, metavar="N|auto|all", help=text)


def _add_scale(fit: argparse.ArgumentParser) -> None:
    add = fit.add_argument_group("large data").add_argument
    text = "memory for blocks of rows, such as 500M or 2G; larger data are read from disk in every pass (1G)"
    add("--memory-limit", type=_bytes, metavar="SIZE", help=text)
    text = "save finished searches, so that the same command resumes an interrupted fit; deleted at the end"
    add("--checkpoint", metavar="FILE", help=text)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    _add_files(fit)
    _add_method(fit)
    _add_columns(fit)
    _add_reading(fit)
    _add_running(fit)
    _add_scale(fit)
    group = fit.add_argument_group("writing")
    add = group.add_argument
    _add_labels(group, "write the cluster of every row: .csv, .tsv, .parquet, or - (standard output)")
    add("--model", metavar="FILE", help="write the model, for 'ravine predict' and 'ravine report'")
    add("--report", metavar="FILE", help="write an HTML page that explains the clusters")
    add("--sql", metavar="FILE", help="write a SELECT that assigns the rows of a table to the clusters")
    add("--table", default="data", metavar="NAME", help="name of the table for --sql (data)")
    add("--dialect", choices=DIALECTS, default="duckdb", help="SQL dialect (duckdb)")
    add("--json", action="store_true", help="print the result, or the error, as JSON")
    text = "if Ctrl-C ends the fit, write the clusters found so far (default: write nothing)"
    add("--save-partial", action="store_true", help=text)
    _add_overwriting(group)


def _add_predict(predict: argparse.ArgumentParser) -> None:
    _add_files(predict, model=True)
    text = "write the cluster of every row: .csv, .tsv, .parquet (default: CSV on standard output)"
    _add_labels(predict, text)
    _add_reading(predict)
    _add_overwriting(predict)


def _add_report(report: argparse.ArgumentParser) -> None:
    _add_files(report, model=True)
    report.add_argument(
        "--out", metavar="FILE", default="report.html", help="name of the HTML page (report.html)"
    )
    report.add_argument("--title", metavar="TEXT", help="heading of the page")
    _add_reading(report)
    _add_overwriting(report)


def _add_compare(compare: argparse.ArgumentParser) -> None:
    _add_files(compare)
    _add_clusters(compare)
    compare.add_argument("--json", action="store_true", help="print the ranking, or the error, as JSON")
    _add_reading(compare)
    _add_columns(compare)
    _add_running(compare)
    compare.add_argument("--quiet", action="store_true", help="print no notes and no progress")


def _add_show(show: argparse.ArgumentParser) -> None:
    _add_model(show)
    show.add_argument("--json", action="store_true", help="print the model, or the error, as JSON")


def _add_cut(cut: argparse.ArgumentParser) -> None:
    _add_model(cut)
    text = "number of clusters, fewer than the model has"
    cut.add_argument("-k", "--clusters", type=_number, required=True, metavar="N", help=text)
    cut.add_argument("-o", "--out", metavar="FILE", required=True, help="write the new model")
    cut.add_argument("--force", action="store_true", help="overwrite an existing file")


def _add_explore(explore: argparse.ArgumentParser) -> None:
    text = "input file; or a model written by 'ravine fit --model', then an input file"
    explore.add_argument("files", nargs="+", metavar="[MODEL] FILE", help=text)
    group = explore.add_argument_group("method")
    group.add_argument("--method", choices=list(METHODS), default="minimum-density", help="clustering method")
    _add_clusters(group)
    _add_columns(explore)
    _add_reading(explore)
    _add_running(explore)
    group = explore.add_argument_group("page")
    text = "folder in which the work is saved (default: FILE.explore)"
    group.add_argument("--session", metavar="FOLDER", help=text)
    group.add_argument("--port", type=_port, default=0, metavar="N", help="port (default: any free one)")
    group.add_argument("--no-browser", action="store_true", help="only print the address")
    group.add_argument("--quiet", action="store_true", help="print only the address and errors")


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "--report", metavar="FILE", help="path of the HTML page (default: in a temporary folder)"
    )
    demo.add_argument("--force", action="store_true", help="overwrite an existing page")


def _add_completion(completion: argparse.ArgumentParser) -> None:
    completion.add_argument("shell", choices=SHELLS)


COMMANDS: dict[str, tuple[str, str | None, Callable[[argparse.ArgumentParser], None]]] = {
    "fit": ("cluster the rows of a file and describe the clusters", FIT_EPILOG, _add_fit),
    "predict": ("assign the rows of another file to the clusters of a model", None, _add_predict),
    "report": ("write an HTML report about a model and the rows of a file", None, _add_report),
    "show": ("print the tree, the columns and the parameters of a model", None, _add_show),
    "cut": ("write a model with fewer clusters", None, _add_cut),
    "compare": ("run all methods on a file and rank them without labels", None, _add_compare),
    "explore": ("look at the clusters of a file, and edit them, in a browser", EXPLORE_EPILOG, _add_explore),
    "demo": ("cluster the handwritten digits that ship with scikit-learn", None, _add_demo),
    "completion": ("print a script for shell completion", COMPLETION_EPILOG, _add_completion),
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
        words = [action.metavar or action.dest.upper() for action in command._get_positional_actions()]
        command.usage = " ".join(["ravine", name, *map(str, words), "[options]"])
    return parser


def did_you_mean(message: str, command: str) -> str:
    """Return a guess for an option that does not exist, from the message about it, or nothing."""
    unknown = re.match(r"unrecognized arguments: (--[\w-]+)", message)
    if not unknown or command not in COMMANDS:
        return ""
    options = _Parser(add_help=False)
    COMMANDS[command][2](options)
    close = difflib.get_close_matches(unknown[1], list(options._option_string_actions), 1)
    return f"; did you mean {close[0]}?" if close else ""
