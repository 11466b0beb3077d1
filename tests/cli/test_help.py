"""Every command has a one-line description and examples that work."""

import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from quota_ops.cli import COMMANDS, Commands, main

WIDE, NARROW = 100, 80


def commands() -> Iterator[tuple[str, click.Command]]:
    """Return every command and sub-command, by its words."""
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            for below in command.list_commands(context):
                yield f"{name} {below}", command.commands[below]


EVERY = dict(commands())


def help_of(command: click.Command, name: str) -> str:
    """Return the output of --help."""
    with click.Context(command, info_name=f"quota-ops {name}") as context:
        return command.get_help(context)


@pytest.mark.parametrize("name", EVERY)
def test_a_command_is_told_in_one_line(name: str) -> None:
    """The first sentence of a command's help fits on a narrow terminal, uncut."""
    short = EVERY[name].get_short_help_str(NARROW)
    assert short.endswith(".")
    assert not short.endswith("...")
    assert len(short) <= NARROW - len("  reconcile  ") - 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_lists_what_a_command_says_of_itself(name: str) -> None:
    """The line in `--help`, which imports no command, is the first of the command's help."""
    assert EVERY[name].get_short_help_str(NARROW) == COMMANDS[name]


@pytest.mark.parametrize("name", EVERY)
def test_a_command_shows_examples(name: str) -> None:
    """An example starts with the command as it is typed; every option has a description."""
    shown = help_of(EVERY[name], name)
    group = name.partition(" ")[0]
    examples = help_of(EVERY[group], group)
    assert re.search(rf"^ +quota-ops {name}\b", examples, re.MULTILINE)
    assert all(param.help for param in EVERY[name].params if isinstance(param, click.Option))
    assert all(len(line) <= WIDE for line in shown.splitlines())


def test_every_example_parses() -> None:
    """Each example's command and options exist."""
    lines = [line.strip() for name in EVERY for line in help_of(EVERY[name], name).splitlines()]
    examples = [line.split() for line in lines if line.startswith("quota-ops ")]
    assert len(examples) > len(COMMANDS)
    for _, name, *words in examples:
        assert name in COMMANDS
        known = {
            option
            for full, command in EVERY.items()
            if full.split(" ")[0] == name
            for param in command.params
            for option in param.opts
        }
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("chek", "check"), ("reconcil", "reconcile"), ("sandbx", "sandbox"), ("xyzzy", None)],
)
def test_a_command_that_there_is_none_of(typed: str, meant: str | None) -> None:
    """The error suggests the most similar command, if there is one."""
    assert isinstance(main, Commands)
    with pytest.raises(click.UsageError) as error:
        main.resolve_command(click.Context(main), [typed])
    asks = "" if meant is None else f" Did you mean {meant}?"
    assert error.value.message == f"unknown command {typed!r}.{asks}"


def test_what_help_costs() -> None:
    """--help imports neither a Kafka client nor a table library, nor anything else that is slow."""
    program = (
        "import sys; from quota_ops.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = {
        "airflow",
        "confluent_kafka",
        "duckdb",
        "jinja2",
        "kafka",
        "obstore",
        "pyarrow",
        "pyspark",
        "rich",
    }
    assert heavy.isdisjoint(ended.stderr.split())
    assert ended.stdout.startswith("Usage: ")
