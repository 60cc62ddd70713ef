"""The command that prints a script for shell completion, which the package shtab writes."""

from __future__ import annotations

from argparse import Namespace

from ravine.cli.arguments import build_parser
from ravine.exceptions import RavineError


def run_completion(arguments: Namespace) -> None:
    """Print a script that completes commands, options and names of files."""
    try:
        import shtab
    except ImportError as error:
        raise RavineError('completion needs shtab: pip install "ravine[completion]"') from error
    parser = build_parser()
    (commands,) = parser._subparsers._group_actions  # type: ignore[union-attr]
    for command in commands.choices.values():  # type: ignore[union-attr]
        for action in command._actions:
            if {"FILE", "MODEL"} & set(str(action.metavar).split()):
                action.complete = shtab.FILE
    print(shtab.complete(parser, arguments.shell))
