"""Refuses options that have no effect together with others, before a command does anything.

Each command lists its rules; tests/cases/cli/options.yaml lists their results for every option and
every pair.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct

from quota_ops.model.errors import InvalidInput

Command = TypeVar("Command", bound=Callable[..., Any])


class IdleRule(Struct, frozen=True):
    """When an option has no effect: with any option in `beside`, or without all in `without`.

    With any option in `unless` it always has an effect.
    Options are named as they are typed; `--format json` is the option `--format` with that value.
    """

    option: str
    remedy: str
    beside: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def find_why(self, given: Sequence[str]) -> str | None:
        """Return why the option has no effect with the given options; None if it has one."""
        if self.option not in given or set(self.unless) & set(given):
            return None
        if met := [option for option in self.beside if option in given]:
            return f"{self.option} has no effect with {met[0]}"
        if self.without and not set(self.without) & set(given):
            return f"{self.option} has no effect without {_join(self.without)}"
        return None


def refuse_idle(
    option: str,
    remedy: str,
    *,
    beside: Sequence[str] = (),
    unless: Sequence[str] = (),
    without: Sequence[str] = (),
) -> Callable[[Command], Command]:
    """Add a rule to a command, which then raises InvalidInput if the option has no effect."""
    rule = IdleRule(option, remedy, tuple(beside), tuple(unless), tuple(without))

    def decorate(command: Command) -> Command:
        @wraps(command)
        def checked(*args: Any, **options: Any) -> Any:
            check_rule(rule, click.get_current_context())
            return command(*args, **options)

        checked.rules = (rule, *rules_of(command))  # type: ignore[attr-defined]
        return checked  # type: ignore[return-value]

    return decorate


def rules_of(command: Callable[..., Any] | None) -> tuple[IdleRule, ...]:
    """Return the rules that were added to a command's function."""
    rules: tuple[IdleRule, ...] = getattr(command, "rules", ())
    return rules


def check_rule(rule: IdleRule, context: click.Context) -> None:
    """Raise InvalidInput if the option was typed but has no effect."""
    if why := rule.find_why(tuple(_given(context))):
        raise InvalidInput(why, rule.remedy)


def _given(context: click.Context) -> Iterator[str]:
    """Yield the typed options, by name and with their values, and the names of arguments."""
    for param in context.command.params:
        is_typed = context.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if not (is_typed and param.expose_value):  # --verbose is not the command's own
            continue
        if isinstance(param, click.Argument):
            if context.params[str(param.name)]:
                yield str(param.name).upper()
            continue
        yield param.opts[0]
        if isinstance(value := context.params[str(param.name)], str):
            yield f"{param.opts[0]} {value}"


def _join(options: Sequence[str]) -> str:
    *first, last = options
    return f"{', '.join(first)} or {last}" if first else last
