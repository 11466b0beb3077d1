"""An option without an effect is refused: the table lists every option and every such pair."""

from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import click
import pytest

from quota_ops.cli.options import check_rule, rules_of
from quota_ops.model.errors import InvalidInput
from tests.cli.test_help import EVERY
from tests.yaml_cases import load_yaml

TABLE: dict[str, Any] = load_yaml(
    (Path(__file__).parents[1] / "cases" / "cli" / "options.yaml").read_text("utf-8")
)
COMMANDS = {
    name: command for name, command in EVERY.items() if not isinstance(command, click.Group)
}


def items(command: click.Command) -> dict[str, list[str]]:
    """Return every option and argument, one item for each choice, and how it is typed."""
    found: dict[str, list[str]] = {}
    for param in command.params:
        if "--verbose" in param.opts:  # every command has it, and for errors alone
            continue
        if isinstance(param, click.Argument):
            if not param.required:
                found[str(param.name).upper()] = [_sample(param)]
        elif isinstance(param, click.Option) and param.is_flag:
            found[param.opts[0]] = [param.opts[0]]
        elif isinstance(param.type, click.Tuple):
            found[param.opts[0]] = [param.opts[0], *map(_sample_type, param.type.types)]
        elif isinstance(param.type, click.Choice):
            for choice in param.type.choices:
                found[f"{param.opts[0]} {choice}"] = [param.opts[0], choice]
        else:
            found[param.opts[0]] = [param.opts[0], _sample(param)]
    return found


def _sample(param: click.Parameter) -> str:
    """Return a value that the parser accepts."""
    return "2026-12-01T00:00Z" if param.name == "as_of" else _sample_type(param.type)


def _sample_type(kind: click.ParamType[Any]) -> str:
    if isinstance(kind, click.Choice):
        return str(kind.choices[0])
    if isinstance(kind, click.Path):
        return str(Path(__file__) if kind.dir_okay is False else Path(__file__).parent)
    return str(kind.min) if isinstance(kind, click.IntRange) else "7"


def refusals(command: click.Command) -> Iterator[str]:
    """Return each option that is refused alone, and each that is refused beside another."""
    every = items(command)
    alone = {one for one in every if _refused(command, every[one])}
    told = {(one, "alone") for one in alone}
    for one, other in permutations(every, 2):
        refused = _refused(command, [*every[one], *every[other]])
        if refused == one.split()[0] and one not in alone:
            told.add((one, f"beside {other}"))
        if one in alone and refused is None:
            told.add((one, f"works beside {other}"))
    for one, when in told:
        option = one.split()[0]
        whole = {(each, when) for each in every if each.split()[0] == option} <= told
        yield f"{option if whole else one} {when}"


def _refused(command: click.Command, arguments: Sequence[str]) -> str | None:
    """Return the option that a rule refuses among these, or None."""
    needed = [
        word
        for param in command.params
        if param.required
        for word in ([*param.opts[:1]] if isinstance(param, click.Option) else [])
        + [_sample(param)]
        if not (isinstance(param, click.Option) and param.opts[0] in arguments)
    ]
    context = command.make_context("it", ["--verbose", *arguments, *needed])
    for rule in rules_of(command.callback):
        try:
            check_rule(rule, context)
        except InvalidInput as error:
            return error.message.split()[0] if error.remedy else "no remedy"
    return None


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_that_has_no_effect_is_refused(name: str) -> None:
    """Every option is in the table, and so is every pair of which one has no effect."""
    row = TABLE.get(name, {})
    there = list(dict.fromkeys(one.split()[0] for one in items(COMMANDS[name])))

    assert there == row.get("options", [])
    assert sorted(set(refusals(COMMANDS[name]))) == row.get("idle", [])


def test_the_table_names_no_command_that_is_gone() -> None:
    """Each row of the table belongs to an existing command."""
    assert set(TABLE) <= set(COMMANDS)
