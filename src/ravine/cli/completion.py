"""Scripts that complete the commands and options of `ravine` in a shell, made from its parser."""

from __future__ import annotations

import argparse
import shlex

BASH = """\
_ravine() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" words=""
  COMPREPLY=()
  case "${{COMP_WORDS[1]}} $before" in
{values}
  esac
  if [[ -z $words ]]; then
    if [[ $COMP_CWORD -eq 1 ]]; then
      words="{commands}"
    elif [[ $current == -* ]]; then
      case "${{COMP_WORDS[1]}}" in
{options}
      esac
    else
      case "${{COMP_WORDS[1]}}" in
{places}
      esac
      [[ -z $words ]] && COMPREPLY=($(compgen -f -- "$current")) && return
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o filenames -F _ravine ravine"""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script for one shell."""
    commands = _commands(parser)
    if shell == "fish":
        return _fish(commands)
    text = _bash(commands)
    return f"autoload -U +X bashcompinit && bashcompinit\n{text}" if shell == "zsh" else text


def _commands(parser: argparse.ArgumentParser) -> dict[str, tuple[str, list[argparse.Action]]]:
    """Return the commands with their help and what each takes."""
    (made,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    summaries = {choice.dest: choice.help or "" for choice in made._choices_actions}
    return {name: (summaries[name], command._actions) for name, command in made.choices.items()}


def _bash(commands: dict[str, tuple[str, list[argparse.Action]]]) -> str:
    values, options, places = [], [], []
    for name, (_, actions) in commands.items():
        listed = " ".join(option for action in actions for option in action.option_strings)
        options.append(f'        {name}) words="{listed}" ;;')
        for action in actions:
            if not action.choices:
                continue
            choices = " ".join(map(str, action.choices))
            if action.option_strings:
                values.append(f'    "{name} {action.option_strings[-1]}") words="{choices}" ;;')
            else:
                places.append(f'        {name}) words="{choices}" ;;')
    listed = " ".join([*commands, "--help", "--version"])
    return BASH.format(
        values="\n".join(values), commands=listed, options="\n".join(options), places="\n".join(places)
    )


def _fish(commands: dict[str, tuple[str, list[argparse.Action]]]) -> str:
    lines = []
    for name, (summary, actions) in commands.items():
        quoted = shlex.quote(summary)
        lines.append(f"complete -c ravine -f -n __fish_use_subcommand -a {name} -d {quoted}")
        for action in actions:
            choices = f" -x -a {shlex.quote(' '.join(map(str, action.choices)))}" if action.choices else ""
            seen = f"'__fish_seen_subcommand_from {name}'"
            if not action.option_strings:
                if choices:
                    lines.append(f"complete -c ravine -n {seen}{choices}")
                continue
            takes = "" if action.nargs == 0 else choices or " -r"
            help_text = shlex.quote((action.help or "").replace("%%", "%"))
            lines.append(
                f"complete -c ravine -n {seen} -l {action.option_strings[-1][2:]}{takes} -d {help_text}"
            )
    return "\n".join(lines)
