"""The generated sections of the documentation, by name."""

import ast
import inspect
import re
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from enum import StrEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from quota_ops.cli import main
from quota_ops.desired.yaml.shapes import (
    CLUSTER_FILE,
    FREEZE,
    GROUP,
    GUARDS,
    LIMITS,
    MEMBER,
    MEMORY,
    OVERRIDE,
    OWNER,
    QUOTA,
    QUOTAS_FILE,
    RETIRED_BROKER,
    SILENCE,
    USAGE,
    USE,
    Shape,
)
from quota_ops.findings.codes import CODES, Code, DecidedBy
from quota_ops.lab.kafka.jars import DEFAULT_VERSION, pinned_versions
from quota_ops.model.plans.guard import Guard
from quota_ops.model.plans.policy import GuardThresholds
from quota_ops.model.quotas.difference import Kind
from quota_ops.model.quotas.quota import QUOTA_KEYS
from quota_ops.model.runs.outcome import Status
from quota_ops.model.usage.usage import Preset
from quota_ops.report.outline.cells import KIND_MEANING
from tests.docs.markdown import PAGES, ROOT, Page
from tests.docs.python_api import python_api
from tests.faults.every import EVERY
from tests.faults.table import on_the_page, section
from tests.faults.weather import sentence


def docstrings(enum: type[StrEnum]) -> dict[str, str]:
    """Return the values of an enumeration and the docstring under each."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(enum))).body
    assert isinstance(definition, ast.ClassDef)
    body, found = definition.body, {}
    for statement, below in pairwise(body):
        if isinstance(statement, ast.Assign) and isinstance(below, ast.Expr):
            (name,) = statement.targets
            assert isinstance(name, ast.Name)
            assert isinstance(below.value, ast.Constant)
            found[enum[name.id].value] = " ".join(str(below.value.value).split())
    return found


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def _values(head: tuple[str, str], enum: type[StrEnum]) -> str:
    return table(head, ((f"`{name}`", words) for name, words in docstrings(enum).items()))


def _fields(*shapes: Shape, defaults: Mapping[str, object] = {}) -> str:
    return table(
        ("field", "", "example"),
        (
            (
                f"`{name}`" + (", required" if name in shape.required else ""),
                field.description + _default(defaults.get(name)),
                f"`{field.example}`",
            )
            for shape in shapes
            for name, field in shape.fields.items()
        ),
    )


def _default(value: object) -> str:
    return "" if value is None else f" Default {value:g}."


def _guard_numbers() -> str:
    thresholds = GuardThresholds()
    return _fields(GUARDS, defaults={name: getattr(thresholds, name) for name in GUARDS.fields})


def _keys() -> str:
    return table(
        ("key", "what it limits", "unit", "of"),
        (
            (f"`{key.name}`", key.limits, key.unit, ", ".join(sorted(key.types)))
            for key in QUOTA_KEYS.values()
        ),
    )


def commands(
    command: click.Command = main, name: str = "quota-ops", parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the full name and the help of a command and of its subcommands."""
    wide: dict[str, Any] = {**command.context_settings, "terminal_width": 96}
    wide["max_content_width"] = 96
    context = click.Context(command, info_name=name, parent=parent, **wide)
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for under in command.list_commands(context):
            found = command.get_command(context, under)
            assert found is not None
            yield from commands(found, under, context)


def _md(text: str) -> str:
    """Escape a text in which Markdown would take `<default>` for HTML."""
    return text.replace("<default>", "`<default>`")


def _finding_codes() -> str:
    links = {code: f"[{code}](#{code.lower()})" for code in CODES}
    rows = ((links[code], one.severity, _md(one.title)) for code, one in CODES.items())
    return table(("code", "", "what it is"), rows)


def _findings() -> str:
    parts = (
        f"## {code.code}\n\n**{_md(code.title[:1].upper() + code.title[1:])}** ({code.severity}).\n"
        f"{_md(code.means)}\n{code.hurts}\n{_md(code.remedy)}\n\n"
        f"{_example(code.example)}"
        f"{_decided_by(code)}"
        for code in CODES.values()
    )
    return "\n" + "".join(parts)


def _decided_by(code: Code) -> str:
    return "" if code.decided_by is DecidedBy.FILES else f"Decided by {code.decided_by}.\n\n"


def _example(text: str) -> str:
    """Return the example of a finding as a block for each file; without a file, quotas."""
    parts = re.split(r"^# (cluster|team)\.yaml\n", text, flags=re.MULTILINE)
    files = {"team": text} if len(parts) == 1 else dict(zip(parts[1::2], parts[2::2], strict=True))
    blocks = {
        "cluster": "# cluster.yaml\ncluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: orders\n{}",
        "team": "owner: team\nquotas:\n{}",
    }
    indented = {"cluster": "", "team": "  "}
    return "".join(
        f"```yaml\n{blocks[file].format(textwrap.indent(part.rstrip(), indented[file]))}\n```\n\n"
        for file, part in files.items()
    )


COMMANDS_BY_USE = {
    "Check YAML, and see what a plan would do": "check explain plan effects review diff validate",
    "Write to the cluster": "reconcile apply verify alter rollback",
    "Look at the cluster": "ping describe resolve inventory usage report",
    "Manual changes, and what is managed": "accept hold holds adopt release",
    "Earlier runs": "runs show history backtest suggest record metrics prune",
    "Set up, and try out": "init import schema findings sandbox demo up down",
}
SHARED_BY = 6
"""An option that this many commands have with the same help is described once."""


def _cli() -> str:
    """Return the shared options, and a table of all commands, by use."""
    shared = _find_shared()
    every = {_option(param): param for command in COMMANDS.values() for param in command.params}
    options = click.Command("", params=[every[option] for option in sorted(shared)])
    parts = []
    for use, names in COMMANDS_BY_USE.items():
        rows = (
            (f"[`{name}`](cli/{name}.md)", COMMANDS[name].get_short_help_str(200))
            for name in names.split()
        )
        parts.append(f"## {use}\n{table(('command', 'what it does'), rows)}")
    return f"\n{''.join(parts)}## Shared options\n\n```text\n{_options(options)}\n```\n"


def _find_shared() -> set[str]:
    """Return the options that many commands have with the same help; one for each name."""
    counts = Counter(
        option for command in COMMANDS.values() for option in map(_option, command.params)
    )
    common = [option for option, count in counts.most_common() if count >= SHARED_BY]
    return set({option.partition(" ")[0]: option for option in reversed(common)}.values())


def _command_page(name: str) -> str:
    """Return the help of a command and, where a page runs it, an example with its output."""
    page = _command(COMMANDS[name], f"quota-ops {name}", _find_shared())
    example = _find_example(name)
    if example is None:
        return f"\n{page}"
    source, shown = example
    title = source.text.partition("\n")[0].removeprefix("# ")
    link = f"[{title}](../../{source.name.removeprefix('docs/')})"
    return f"\n{page}Example, from {link}:\n\n```text\n{shown}\n```\n"


_LONGEST_EXAMPLE = 45
"""Lines of an example."""


def _find_example(name: str) -> tuple[Page, str] | None:
    """Return a call of a command on a page, and what it prints; tests run or compare each.

    That is the shortest that succeeds with more than one line of output and without a pipe, if
    there is one.
    """
    found: list[tuple[tuple[bool, ...], int, Page, str]] = []
    for page in map(Page, PAGES):
        if page.path.parent.name == "cli" or page.name == "CHANGELOG.md":
            continue
        for block in page.blocks():
            if block.language == "console":
                for call in re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE):
                    lines = call.rstrip().splitlines()
                    if re.match(rf"\$ quota-ops {name}(?![\w-])", call) and lines[1:]:
                        rank = ("[exit code" in call, "|" in lines[0], not lines[2:])
                        found.append((rank, len(lines), page, "\n".join(lines)))
    short = [example for example in found if example[1] <= _LONGEST_EXAMPLE]
    best = min(short, default=None, key=lambda example: example[:2])
    return None if best is None else best[2:]


def _find_command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def _option(param: click.Parameter) -> str:
    """Return a text that is the same for the same option; an argument's own text for each."""
    words = param.help if isinstance(param, click.Option) else id(param)
    return f"{' '.join(param.opts)} {words}"


def _options(command: click.Command) -> str:
    command.add_help_option = False
    return next(text for _, text in commands(command, "")).partition("Options:\n")[2].rstrip()


def _command(command: click.Command, name: str, shared: set[str]) -> str:
    """Return a command without the options that many commands share, and its subcommands."""
    own = copy(command)
    own.params = [param for param in command.params if _option(param) not in shared]
    own.add_help_option = False
    if isinstance(own, click.Group):
        own.commands = {}
    usage, _, text = next(commands(own, name))[1].partition("\n")
    used = [param.opts[-1] for param in command.params if _option(param) in shared]
    also = f"Shared options: {', '.join(f'`{one}`' for one in used)}.\n\n" if used else ""
    below = (
        _command(sub, f"{name} {sub_name}", shared)
        for sub_name, sub in getattr(command, "commands", {}).items()
    )
    usage = usage.removeprefix("Usage: ")
    heading = "" if name.count(" ") == 1 else f"## {name}\n\n"
    return f"{heading}```text\n{usage}\n{text.rstrip()}\n```\n\n{also}{''.join(below)}"


def _kafka_versions() -> str:
    everything = (
        "everything: rules, loop, authentication of every kind, outages, throttling, Airflow"
    )
    return table(
        ("Apache Kafka", "in the test suite"),
        (
            (version, everything if version == DEFAULT_VERSION else "rules, loop, authentication")
            for version in pinned_versions()
        ),
    )


def _packages() -> str:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (layers,) = (
        contract["layers"] for contract in contracts if contract.get("containers") == ["quota_ops"]
    )
    return table(
        ("layer", "package", "what is in it"),
        (
            (str(number), *_package(ROOT / "quota_ops" / name))
            for number, layer in enumerate(layers, start=1)
            for name in layer.split(" | ")
        ),
    )


def _package(path: Path) -> tuple[str, str]:
    """Return the display name of a package or module, and the first line of its docstring."""
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    name = f"{path.name}/" if path.is_dir() else source.name
    docstring = str(ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))))
    return f"`{name}`", docstring.partition("\n")[0]


COMMANDS = {
    name: _find_command(name) for names in COMMANDS_BY_USE.values() for name in names.split()
}
assert set(COMMANDS) == set(main.list_commands(click.Context(main)))
SECTIONS: dict[str, Callable[[], str]] = {
    **{f"cli-{name}": partial(_command_page, name) for name in COMMANDS},
    "cli": _cli,
    "cluster-file": lambda: _fields(CLUSTER_FILE),
    "faults": lambda: section(EVERY, on_the_page()),
    "finding-codes": _finding_codes,
    "findings": _findings,
    "guard-numbers": _guard_numbers,
    "guards": lambda: table(
        ("guard", "blocks a plan when", "checks an `alter`"),
        (
            (f"`{guard}`", guard.meaning, f"no, {guard.not_alter}" if guard.not_alter else "yes")
            for guard in Guard
        ),
    ),
    "kafka-versions": _kafka_versions,
    "keys": _keys,
    "kinds": lambda: table(
        ("kind", "what it means"), ((kind.replace("_", " "), KIND_MEANING[kind]) for kind in Kind)
    ),
    "limits": lambda: _fields(LIMITS),
    "group": lambda: _fields(GROUP),
    "member": lambda: _fields(MEMBER),
    "use": lambda: _fields(USE),
    "overrides": lambda: _fields(OVERRIDE),
    "memory": lambda: _fields(MEMORY),
    "outcomes": lambda: _values(("outcome", "what it means"), Status),
    "quota": lambda: _fields(QUOTA),
    "quotas-file": lambda: _fields(QUOTAS_FILE),
    "freeze": lambda: _fields(FREEZE),
    "owners": lambda: _fields(OWNER),
    "retired-brokers": lambda: _fields(RETIRED_BROKER),
    "python-api": python_api,
    "packages": _packages,
    "silence": lambda: _fields(SILENCE),
    "usage": lambda: _fields(USAGE),
    "usage-presets": lambda: _values(("preset", "what it fits"), Preset),
    "weather": sentence,
}
