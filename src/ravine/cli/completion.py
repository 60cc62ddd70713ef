"""Scripts that complete the commands and options of `ravine` in a shell, generated from the parser."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator

# One case per situation, "command:previous word:current word"; the first that matches decides.
BASH = """\
_ravine() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words=""
  [[ $COMP_CWORD -gt 1 ]] && command="${{COMP_WORDS[1]}}"
  case "$command:$previous:$current" in
{cases}
    *) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _ravine ravine"""

Commands = dict[str, tuple[str, list[argparse.Action]]]  # the summary and the arguments of each command


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for one shell."""
    (subparsers,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    summaries = {choice.dest: choice.help or "" for choice in subparsers._choices_actions}
    commands = {name: (summaries[name], command._actions) for name, command in subparsers.choices.items()}
    if shell == "fish":
        return "\n".join(_fish(commands))
    text = BASH.format(cases="\n".join(f'    {case}) words="{words}" ;;' for case, words in _cases(commands)))
    return f"autoload -U +X bashcompinit && bashcompinit\n{text}" if shell == "zsh" else text


def _cases(commands: Commands) -> Iterator[tuple[str, str]]:
    """Yield the cases of the bash script, and the words that complete each."""
    yield ":*", " ".join([*commands, "--help", "--version"])
    for name, (_, actions) in commands.items():
        choices = {action: " ".join(map(str, action.choices)) for action in actions if action.choices}
        yield from (
            (f"{name}:{a.option_strings[-1]}:*", words) for a, words in choices.items() if a.option_strings
        )
        yield f"{name}:*:-*", " ".join(option for action in actions for option in action.option_strings)
        yield from ((f"{name}:*", words) for a, words in choices.items() if not a.option_strings)


def _fish(commands: Commands) -> Iterator[str]:
    for name, (summary, actions) in commands.items():
        yield f"complete -c ravine -f -n __fish_use_subcommand -a {name} -d {shlex.quote(summary)}"
        for action in actions:
            line = f"complete -c ravine -n '__fish_seen_subcommand_from {name}'"
            choices = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices else ""
            if action.option_strings:
                value = "" if action.nargs == 0 else choices or " -r"
                text = shlex.quote((action.help or "").replace("%%", "%"))
                yield f"{line} -l {action.option_strings[-1][2:]}{value} -d {text}"
            elif choices:
                yield line + choices
