"""Run a command: standard streams, signals, and errors as one sentence with an exit code."""

from __future__ import annotations

import argparse
import io
import json
import os
import shlex
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any, TextIO, cast

from ravine.cli.arguments import COMMANDS, build_parser
from ravine.cli.errors import DATA_ERROR, INTERRUPTED, USAGE_ERROR, UsageError
from ravine.exceptions import RavineError

# What a terminal obeys, as escapes of JSON; our own lines end with the first and may have the second.
CONTROLS = {code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if argv is None else argv)
    prepare_streams()
    try:
        arguments = build_parser().parse_args(given)
    except UsageError as error:
        command = f" {given[0]}" if given and given[0] in COMMANDS else ""
        with escaped_streams():
            return _fail(f"{error}; see 'ravine{command} --help'", USAGE_ERROR, as_json="--json" in given)
    arguments.typed = shlex.join(["ravine", *given])
    end_on_signals()
    with escaped_streams():
        return _finish(arguments)


def _finish(arguments: argparse.Namespace) -> int:
    """Run a command to its end and return its exit code."""
    try:
        _run(arguments)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reader of our output, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (Exception, SystemExit) as error:
        if arguments.debug:
            traceback.print_exc()
        return _fail(*_sentence(error), as_json=getattr(arguments, "json", False))


def _run(arguments: argparse.Namespace) -> None:
    # imported here: numpy and scikit-learn, which --help can do without
    module = import_module(f"ravine.cli.{COMMANDS[arguments.command][0]}")
    with (
        warnings.catch_warnings()
    ):  # tables have names, by which their columns were matched; arrays have none
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        getattr(module, f"run_{arguments.command}")(arguments)


def prepare_streams() -> None:
    """Make the standard streams safe to use.

    Closed streams are opened on the null device; otherwise the next file to be opened would get their
    descriptor. Characters that a stream cannot encode are replaced by their codes.
    """
    for name in ("stdin", "stdout", "stderr"):  # in this order: each open takes the lowest free descriptor
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class _Escaped:
    """A stream whose text does not act on a terminal: control characters appear as escapes.

    `stream` is the stream itself, for what is meant to act.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return self.stream.write(text.translate(CONTROLS))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Escape control characters, such as those in names of columns, in everything that is printed."""
    out, err = (cast(TextIO, _Escaped(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


def end_on_signals() -> None:
    """Let Ctrl-C and SIGTERM end the program by an exception, so that partial files are deleted.

    It is no `KeyboardInterrupt`, after which a fit would keep the tree found so far and the command go on.
    """

    def end(*_: Any) -> None:
        sys.exit(INTERRUPTED)

    signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # which a background job of a script ignores
        signal.signal(signal.SIGINT, end)


def _sentence(error: BaseException) -> tuple[str, int]:
    """Return an error as one sentence, and its exit code."""
    if isinstance(error, SystemExit):
        return "interrupted", INTERRUPTED
    if isinstance(error, UsageError | RavineError):
        return str(error), USAGE_ERROR if isinstance(error, UsageError) else DATA_ERROR
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}", DATA_ERROR
    if isinstance(error, MemoryError):
        return "there is not enough memory", DATA_ERROR
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"an unexpected error occurred ({what}); --debug shows where", DATA_ERROR


def _fail(sentence: str, code: int, *, as_json: bool) -> int:
    """Print an error as the last line on standard error, and return its exit code."""
    sentence = " ".join(sentence.splitlines())
    line = json.dumps({"error": sentence, "exit_code": code}) if as_json else f"ravine: error: {sentence}"
    print(line, file=sys.stderr)
    return code
