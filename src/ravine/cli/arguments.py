"""The command line: what can be asked for, and what an error looks like. `commands.py` does the work."""

from __future__ import annotations

import argparse
import codecs
import io
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import ravine

DATA_ERROR, USAGE_ERROR, INTERRUPTED, TERMINATED = 1, 2, 130, 143
AGAIN = 3.0  # seconds after which the program is told again to end, if it has not
PLAIN_LINES = str.maketrans("├└│─", "|`|-")  # of a tree, where a stream cannot encode them
# The clusterers by their names on the command line; a test compares the list with the public classes. It is
# written out because importing the classes takes seconds, which `ravine --help` must not.
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
    "rbf",
    "diffusion",
    "polynomial",
    "cosine",
    "laplacian",
    "sigmoid",
    "linear",
    "chi2",
    "additive_chi2",
    "poly",
    "precomputed",
)

DESCRIPTION = """\
ravine clusters data by cutting it with hyperplanes that run through its ravines:
the places where the rows are few. The cuts make a tree that explains every cluster.
"""

EPILOG = """\
examples:
  ravine demo                                      see what it does, on data that is at hand
  ravine fit data.csv --out labels.csv --report report.html
  ravine fit data.parquet --clusters 8 --id customer --model model.ravine
  ravine predict model.ravine new.csv > labels.csv
  ravine compare data.csv --label kind

exit codes:
  0  done      1  the data cannot be used      2  the command was not understood
  130  interrupted (Ctrl-C)      143  ended by SIGTERM

'ravine COMMAND --help' tells about one command.
"""

FIT_EPILOG = """\
examples:
  ravine fit data.csv                              how many clusters there are, and why
  ravine fit data.csv --clusters 5 --out labels.csv
  ravine fit data.csv --id name --exclude date,city --report report.html
  ravine fit data.csv --impute median --one-hot all
  ravine fit data.csv --method principal-direction --set threshold=density
  ravine fit data.csv --kernel diffusion --clusters 2
  ravine fit data.csv --kernel rbf --gamma 0.5 --components 0.9
  zcat data.csv.gz | ravine fit - --json

files:
  CSV, TSV, JSON lines (also gzipped), Parquet, Arrow or Feather, NPY, NPZ; '-' is standard input. The
  kind is told by the first bytes, then by the name. NPZ: a matrix called X, or the only one; other
  arrays may be the label or the id. Columns of a matrix are called x0, x1, ... Tables above 128 MB
  go through a temporary file (in $TMPDIR), so that memory does not grow with the rows.

Columns of text are left out with a note. Missing values ('', NA, NaN, null, none, ?) are an error
unless --impute says how to fill them in. No file is overwritten without --force.
"""


class UsageError(Exception):
    """The command cannot be carried out as it was given."""


class ParserError(Exception):
    """The arguments are not those of any command; `parser` is the one that found out."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.parser = parser


class Ended(SystemExit):
    """The program ends before its work is done, with one sentence and an exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(code)
        self.sentence, self.exit_code = sentence, code


class _Parser(argparse.ArgumentParser):
    """A parser that leaves it to `main` how an error is shown."""

    def error(self, message: str) -> NoReturn:
        raise ParserError(self, message)


def names(text: str) -> list[str]:
    """Read a list of columns, separated by commas; one with a comma in its name goes in double quotes."""
    import csv

    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True))]


def clusters(text: str) -> int | str:
    """Read a number of clusters, or auto."""
    if text == "auto":
        return text
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of at least 1, or auto, is needed, not {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"a whole number of at least 0 is needed, not {text!r}")
    return int(text)


def _gamma(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number above 0, or auto, is needed, not {text!r}") from None


def _components(text: str) -> int | float | None:
    if text == "all":
        return None
    try:
        return int(text) if text.isdigit() else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"a whole number, a share such as 0.9, or all, is needed, not {text!r}"
        ) from None


def _landmarks(text: str) -> int | str | None:
    if text in ("auto", "all"):
        return None if text == "all" else text
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"a whole number, auto or all is needed, not {text!r}")
    return int(text)


def _delimiter(text: str) -> str:
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    if len(text) != 1:
        raise argparse.ArgumentTypeError(f"one character, or tab, is needed, not {text!r}")
    return text


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"NAME=VALUE is needed, not {text!r}")
    return name, value


def _reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument("--id", metavar="COLUMN", help="the rows' names; kept, and not clustered by")
    group.add_argument("--label", metavar="COLUMN", help="true classes: kept out of the fit, used for scores")
    group.add_argument(
        "--impute", choices=["median"], help="fill missing values in with their column's median"
    )
    group.add_argument("--format", choices=FORMATS, help="the kind of the file, where it cannot be told")
    group.add_argument(
        "--delimiter", type=_delimiter, metavar="CHAR", help="between the fields of text (or: tab)"
    )
    group.add_argument("--encoding", metavar="NAME", help="of text, such as latin-1 (default: UTF-8)")


def _choosing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("columns")
    group.add_argument("--columns", type=names, metavar="A,B", help="cluster by these only")
    group.add_argument("--exclude", type=names, default=[], metavar="A,B", help="leave these out")
    group.add_argument(
        "--one-hot",
        type=names,
        default=[],
        metavar="A,B",
        help="take these columns of text in, with one indicator a value; 'all' takes all",
    )


def _running(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument(
        "--seed", type=_seed, default=0, metavar="N", help="for samples and further starts (0)"
    )
    group.add_argument(
        "--jobs", type=int, metavar="N", help="threads (default: all cores); same result for any"
    )


def _writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="overwrite files that are there")
    parser.add_argument("--quiet", action="store_true", help="say nothing but errors")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="ravine",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ravine {ravine.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, summary: str, epilog: str | None = None) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.add_argument("--debug", action="store_true", help="show where an error comes from")
        return made

    _fit(command("fit", "cluster the rows of a file, and say what was found", FIT_EPILOG))

    predict = command("predict", "give the rows of another file their clusters")
    predict.add_argument("model", metavar="MODEL", help="a file that 'ravine fit --model' wrote")
    predict.add_argument("data", metavar="FILE", help="the rows; '-' is standard input")
    predict.add_argument(
        "--out",
        metavar="FILE",
        default="-",
        help=".csv, .tsv or .parquet (default: -, CSV to standard output)",
    )
    _reading(predict)
    _writing(predict)

    report = command("report", "write a page about a model and some rows")
    report.add_argument("model", metavar="MODEL", help="a file that 'ravine fit --model' wrote")
    report.add_argument("data", metavar="FILE", help="the rows; '-' is standard input")
    report.add_argument("--out", metavar="FILE", default="report.html", help="the page (report.html)")
    report.add_argument("--title", metavar="TEXT", help="its heading")
    _reading(report)
    _writing(report)

    compare = command("compare", "run all methods on a file, and rank them without labels")
    compare.add_argument("data", metavar="FILE", help="the rows; '-' is standard input")
    compare.add_argument(
        "--clusters", type=clusters, default="auto", metavar="N|auto", help="how many (auto)"
    )
    compare.add_argument("--json", action="store_true", help="print the ranking, or the error, as JSON")
    _reading(compare)
    _choosing(compare)
    _running(compare)
    compare.add_argument("--quiet", action="store_true", help="say nothing but the ranking and errors")

    demo = command("demo", "cluster the handwritten digits that ship with scikit-learn")
    demo.add_argument("--report", metavar="FILE", help="where its page goes (default: a temporary folder)")
    demo.add_argument("--force", action="store_true", help="overwrite the page if it is there")

    completion = command(
        "completion", "print a script that completes commands in a shell", _COMPLETION_EPILOG
    )
    completion.add_argument("shell", choices=SHELLS)
    return parser


_COMPLETION_EPILOG = """\
examples:
  source <(ravine completion bash)                 in ~/.bashrc
  source <(ravine completion zsh)                  in ~/.zshrc, after compinit
  ravine completion fish > ~/.config/fish/completions/ravine.fish
"""


def _fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("data", metavar="FILE", help="the rows; '-' is standard input")
    method = fit.add_argument_group("method")
    method.add_argument(
        "--method", choices=list(METHODS), default="minimum-density", help="(minimum-density)"
    )
    method.add_argument(
        "--clusters",
        type=clusters,
        default="auto",
        metavar="N|auto",
        help="how many; auto finds as many as there are valleys deeper than chance makes them (auto)",
    )
    method.add_argument(
        "--set",
        type=_setting,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another parameter of the method, such as bandwidth_factor=0.5; may be given again",
    )
    kernel = fit.add_argument_group("kernel")
    kernel.add_argument(
        "--kernel", choices=KERNELS, help="cut in the feature space of a kernel: boundaries bend"
    )
    absent = argparse.SUPPRESS
    kernel.add_argument(
        "--gamma", type=_gamma, default=absent, metavar="X|auto", help="how fast similarity falls (auto)"
    )
    kernel.add_argument(
        "--components",
        type=_components,
        default=absent,
        metavar="N|SHARE|all",
        help="of the feature space: a number, or a share of the variance (all)",
    )
    kernel.add_argument(
        "--landmarks",
        type=_landmarks,
        default=absent,
        metavar="N|auto|all",
        help="the rows that the feature space is made of (auto: all where they are few)",
    )
    _choosing(fit)
    _reading(fit)
    _running(fit)
    output = fit.add_argument_group("writing")
    output.add_argument(
        "--out", metavar="FILE", help="the cluster of every row: .csv, .tsv, .parquet, or - for CSV"
    )
    output.add_argument("--model", metavar="FILE", help="the model, for 'ravine predict' and 'ravine report'")
    output.add_argument("--report", metavar="FILE", help="a page that explains the clusters (HTML)")
    output.add_argument(
        "--sql", metavar="FILE", help="a SELECT that gives the rows of a table their clusters"
    )
    output.add_argument("--table", default="data", metavar="NAME", help="the table for --sql (data)")
    output.add_argument(
        "--dialect", choices=DIALECTS, default="duckdb", help="the language of --sql (duckdb)"
    )
    output.add_argument("--json", action="store_true", help="print the result, or the error, as JSON")
    output.add_argument(
        "--save-partial",
        action="store_true",
        help="if Ctrl-C ends the fit, write the clusters found so far (default: write nothing)",
    )
    _writing(output)  # type: ignore[arg-type]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    closed = prepare_streams()
    try:
        arguments = build_parser().parse_args(given)
    except ParserError as error:
        if "--json" in given:
            return _fail(str(error), USAGE_ERROR, as_json=True)
        error.parser.print_usage(sys.stderr)
        error.parser.exit(USAGE_ERROR, f"{error.parser.prog}: error: {error}\n")
    arguments.typed, arguments.closed = shlex.join(["ravine", *given]), closed
    end_on_signals(keep_interrupts=getattr(arguments, "save_partial", False))
    try:
        _run(arguments)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, KeyboardInterrupt, Ended) as error:
        if arguments.debug:
            import traceback

            traceback.print_exc()
        return _fail(*_sentence(error), as_json=getattr(arguments, "json", False))
    finally:
        _alarm(0.0)


def _run(arguments: argparse.Namespace) -> None:
    if arguments.command == "completion":
        from ravine.cli.completion import script

        print(script(build_parser(), arguments.shell))
        return
    from ravine.cli import commands

    commands.COMMANDS[arguments.command](arguments)


def prepare_streams() -> frozenset[str]:
    """Make the standard streams safe to use; return the names of those that were closed.

    A closed stream is opened on nothing, also lest a file that is opened later gets its number. What an
    encoding lacks is written in plain characters: the lines of a tree as | and -, all else by its code.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:  # in this order, because each gets the lowest number that is free
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    codecs.register_error("ravine", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="ravine")
    return frozenset(closed)


def _plainly(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    text = error.object[error.start : error.end].translate(PLAIN_LINES)
    return text.encode("ascii", "backslashreplace").decode("ascii"), error.end


def end_on_signals(*, keep_interrupts: bool = False) -> None:
    """Let Ctrl-C and SIGTERM end the program by an exception, so that half-written files are cleared away.

    In Python, a fit that is interrupted keeps the tree found so far; with `keep_interrupts` it does so here.
    """
    signal.signal(signal.SIGTERM, _end)
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a job in the background of a script
    if not keep_interrupts and not ignored:
        signal.signal(signal.SIGINT, _end)


def _end(number: int, _: Any) -> NoReturn:
    if hasattr(signal, "SIGALRM"):  # not on Windows
        signal.signal(signal.SIGALRM, lambda *_: _end(number, None))
        _alarm(AGAIN)  # inside a callback of compiled code, the exception is lost
    if number == signal.SIGINT:
        raise Ended("interrupted", INTERRUPTED)
    raise Ended("terminated by SIGTERM", TERMINATED)


def _alarm(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _sentence(error: BaseException) -> tuple[str, int]:
    """Return an error as one sentence, and the exit code that goes with it."""
    from ravine.exceptions import RavineError

    if isinstance(error, Ended):
        return error.sentence, error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", INTERRUPTED
    if isinstance(error, UsageError):
        return str(error), USAGE_ERROR
    if isinstance(error, RavineError):
        return str(error), DATA_ERROR
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}", DATA_ERROR
    if isinstance(error, MemoryError):
        return "there is not enough memory for this", DATA_ERROR
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"something unexpected went wrong ({what}); --debug shows where", DATA_ERROR


def _fail(sentence: str, code: int, *, as_json: bool) -> int:
    """Show an error as the last line on standard error, and return its exit code."""
    import json

    shown = json.dumps({"error": sentence, "exit_code": code}) if as_json else f"ravine: error: {sentence}"
    print(shown, file=sys.stderr)
    return code
