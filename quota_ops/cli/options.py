"""How commands are declared: the options that they share, and when an option has no effect."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource
from msgspec import Struct

from quota_ops.model.errors import InvalidInput
from quota_ops.model.moment import parse_duration
from quota_ops.model.plans.guard import Guard
from quota_ops.model.text import clean_text

Command = TypeVar("Command", bound=Callable[..., Any])


def command(examples: str) -> Callable[[Callable[..., Any]], click.Command]:
    """Declare the command that a function is named after; its help ends with examples.

    `examples` are the lines below the heading; further paragraphs may follow them. The command
    raises InvalidInput for an option that has no effect, by the rules of `refuse_idle`.
    """

    def declare(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        def checked(**typed: Any) -> Any:
            for rule in rules_of(function):
                check_rule(rule, click.get_current_context())
            return function(**typed)

        name = function.__name__.rstrip("_")
        return click.command(name, epilog=f"\b\nExamples:{examples}")(checked)

    return declare


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
    """Add a rule to a command: when an option has no effect, and what to do then."""
    rule = IdleRule(option, remedy, tuple(beside), tuple(unless), tuple(without))

    def decorate(command: Command) -> Command:
        command.rules = (rule, *rules_of(command))  # type: ignore[attr-defined]
        return command

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


def _pack(into: str, kind: Callable[..., Any], *names: str) -> Callable[[Command], Command]:
    """Let a command take some of its options as one value, which `kind` makes of them."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def packed(**typed: Any) -> Any:
            own = {name: typed.pop(name) for name in names if name in typed}
            return command(**{into: kind(**own)}, **typed)

        return packed  # type: ignore[return-value]

    return decorate


cluster_argument = click.argument("cluster")


desired_state = click.option(
    "--desired-state",
    type=click.Path(path_type=Path),
    default=Path("desired_state"),
    envvar="QUOTA_OPS_DESIRED_STATE",
    help="The folder with a subfolder for each cluster.  "
    "[env: QUOTA_OPS_DESIRED_STATE; default: desired_state]",
)


MOST_DAYS = 366
"""How many days of use are read at most."""


def days(default: int, text: str) -> Callable[[Command], Command]:
    """Add --days, how many days of use are read."""
    kind = click.IntRange(1, MOST_DAYS)
    return click.option("--days", type=kind, default=default, show_default=True, help=text)


def group(command: Command) -> Command:
    """Add --owner, --file and --run as `group`; each of them selects many entities."""
    command = _pack("group", dict, "owner", "file", "run")(command)
    for option, metavar, text in (
        ("--run", "RUN", "All entities that this run of the cluster writes."),
        ("--file", "FILE", "All entities of this file below the cluster's folder."),
        ("--owner", "TEXT", "All entities of this owner, in Git and the ledger."),
    ):
        command = click.option(option, metavar=metavar, help=text)(command)
    return command


class EntityFlags(NamedTuple):
    """The options --names, --defaults and --any as they were typed."""

    names: tuple[str, ...]
    defaults: tuple[str, ...]
    anyone: tuple[str, ...]


def selects_group(flags: EntityFlags, group: Mapping[str, str | None]) -> bool:
    """Return whether one of the options of `group` is given. Raises InvalidInput beside names."""
    is_given = any(value is not None for value in group.values())
    if is_given and any(flags):
        raise InvalidInput(
            "--owner, --file and --run already select entities",
            "Leave out --names, --defaults and --any.",
        )
    return is_given


_FORMS = {
    "text": "for people",
    "json": "for scripts",
    "jsonl": "for a stream of rows",
    "csv": "for spreadsheets",
}
"""Each --format with what it is for; `console.show_result` prints it."""


def formats(*forms: str) -> Callable[[Command], Command]:
    """Return the option --format of a command with these forms; the first is the default."""
    return click.option(
        "--format",
        "output",
        type=click.Choice(forms),
        default=forms[0],
        show_default=True,
        help=f"{', '.join(f'{form} {_FORMS[form]}' for form in forms)}.",
    )


output_format = formats("text", "json")
table_format = formats("text", "json", "jsonl", "csv")


run_store = click.option(
    "--run-store",
    metavar="FOLDER",
    help="Where runs and ledgers are kept.  [env: QUOTA_OPS_RUN_STORE; default: in your home]",
)


connection = click.option(
    "--connection",
    "connection_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Use this connection file instead of the connection in cluster.yaml.",
)


def _start_session(**typed: Any) -> Any:
    from quota_ops.cli.session import Session

    return Session(**typed)


with_session = _pack(
    "session", _start_session, "cluster", "desired_state", "run_store", "connection_file"
)
"""Let a command take the cluster and the places that its options name as one `Session`."""


def on_cluster(*more: Callable[[Any], Any], required: bool = True) -> Callable[[Command], Command]:
    """Add CLUSTER, --desired-state, --run-store, and more options, as one `Session`."""

    def decorate(command: Command) -> Command:
        command = with_session(command)
        cluster = click.argument("cluster", required=required)
        for option in (run_store, *reversed(more), desired_state, cluster):
            command = option(command)
        return command

    return decorate


engine = click.option(
    "--engine",
    type=click.Choice(["embedded", "spark"]),
    default="embedded",
    show_default=True,
    help="The engine that runs the SQL: DuckDB in this process, or Spark.",
)


detailed_exitcode = click.option(
    "--detailed-exitcode", is_flag=True, help="Exit with 4 when differences exist."
)


_PLACEHOLDER = "TEXT"
"""The placeholder for a reason in the commands that screens print."""


def _recorded(remedy: str) -> Callable[[click.Context, click.Parameter, str | None], str | None]:
    """Return a callback that cleans a text to be recorded. Raises InvalidInput if it is blank."""

    def take(_ctx: click.Context, option: click.Parameter, given: str | None) -> str | None:
        if given is not None and not clean_text(given):
            raise InvalidInput(
                f"{option.opts[0]} is blank; it is recorded, so it needs a text", remedy
            )
        if given == _PLACEHOLDER:
            raise InvalidInput(
                f"{option.opts[0]} {given} is the placeholder from a printed command", remedy
            )
        return given and clean_text(given)

    return take


def _commit(ctx: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Return a commit id as typed. Raises InvalidInput if it cannot be a commit id."""
    del ctx, option
    if given is not None and not _COMMIT.fullmatch(given):
        raise InvalidInput(
            f"--commit {clean_text(given)!r} is not a commit id: an id has 1 to 200 letters, "
            "digits, '.', '_', '/' and '-'",
            "Pass the id, or leave out --commit to record the commit of the checkout.",
        )
    return given


_COMMIT = re.compile(r"[0-9A-Za-z._/-]{1,200}")


commit = click.option(
    "--commit",
    callback=_commit,
    help="The commit id to record: letters, digits, '.', '_', '/' and '-'.  "
    "[default: the commit of the checkout]",
)


def _find_login() -> str:
    from quota_ops.model.plans.approval import find_login

    return find_login()


by = click.option(
    "--by",
    default=_find_login,
    metavar="NAME",
    callback=_recorded("Pass a name, or leave out --by to record your login."),
    help="Your name; it is recorded.  [default: your login]",
)


def on_run(what: str) -> Callable[[Command], Command]:
    """Return the option --run; its help states what is done in an earlier run."""
    return click.option(
        "--run",
        "run_folder",
        metavar="RUN",
        help=f"{what}, for an earlier run: its name as `runs` lists it, its folder, or `last`.",
    )


run = on_run("Run only this stage")


def _time(_ctx: click.Context, _option: click.Parameter, text: str | None) -> str | None:
    from quota_ops.model.moment import iso_utc, parse_time

    try:
        return None if text is None else iso_utc(parse_time(text))
    except ValueError as error:
        raise InvalidInput(f"--as-of {error}") from None


as_of = click.option(
    "--as-of",
    metavar="TIME",
    callback=_time,
    help="Decide on temporary limits (until, overrides) at this TIME, which has a zone.",
)


def _brokers(_context: click.Context, _option: click.Parameter, given: str | None) -> Any:
    from quota_ops.desired.expand.rates import read_brokers

    return None if given is None else read_brokers(given)


brokers = click.option(
    "--brokers",
    metavar="N|FILE",
    callback=_brokers,
    help="Divide limits of the whole cluster by N brokers, or by those of a FILE that maps each "
    "broker to the topics that it leads.",
)
out = click.option(
    "--out", metavar="FOLDER", help="Write this run into a new FOLDER, and only read the run store."
)


def reason(why: str, *, required: bool = False) -> Callable[[Command], Command]:
    """Return the option --reason; its help states what the reason is for."""
    remedy = "Pass a reason." if required else "Pass a reason, or leave out --reason."
    return click.option("--reason", required=required, callback=_recorded(remedy), help=why)


allow = click.option(
    "--allow",
    multiple=True,
    metavar="GUARD",
    type=click.Choice([guard.value for guard in Guard]),
    help=f"Override a guard; may be repeated. Needs --reason. Guards: {', '.join(Guard)}.",
)


def allowing(command: Command) -> Command:
    """Add --allow, --reason and --by to a command."""
    return allow(reason("Why you approve or override; it is recorded.")(by(command)))


def parse_allowed(
    allow: tuple[str, ...], reason: str | None, approve: str | None
) -> dict[str, str]:
    """Return the guards to override, each with the reason. Raises InvalidInput without a reason."""
    if allow and not reason:
        raise InvalidInput(f"--allow {allow[0]} needs a reason", "Add --reason TEXT.")
    if reason is not None and not (allow or approve):
        raise InvalidInput(
            "--reason needs an override or an approval",
            "Add --allow GUARD to override one, or leave out --reason.",
        )
    return dict.fromkeys(allow, reason or "")


names = click.option(
    "--names",
    multiple=True,
    metavar="TYPE=NAME[,…]",
    help="Entity parts as plans show them: user=alice,client-id=app or 'user=<default>'. If given "
    "more than once, each is one part and may contain commas. A name may be a JSON string: "
    "'user=\"a,client-id=b\"'.",
)


defaults = click.option(
    "--defaults",
    multiple=True,
    metavar="TYPE[,…]",
    help="Entity types whose default you mean: user.",
)


anyone = click.option(
    "--any",
    "anyone",
    multiple=True,
    metavar="TYPE[,…]",
    help="Entity types with any name, including the default.",
)


def entities(command: Command) -> Command:
    """Add --names, --defaults and --any, which select entities, as `flags`."""
    return names(defaults(anyone(_pack("flags", EntityFlags, *EntityFlags._fields)(command))))


strict = click.option("--strict", is_flag=True, help="Leave out entities that have further types.")


def actual(command: Command) -> Command:
    """Add --actual; a snapshot leaves a connection without effect."""
    option = click.option(
        "--actual",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Use a snapshot that `describe --format jsonl` wrote, instead of the cluster.",
    )
    remedy = "Leave it out: quota-ops reads the snapshot, not the cluster."
    return refuse_idle("--connection", remedy, beside=("--actual",))(option(command))


def actual_or_cluster(command: Command) -> Command:
    """Add --actual, with which CLUSTER may be left out, and --desired-state to a command."""
    remedy = "Leave it out, or pass the CLUSTER that the snapshot must come from."
    idle = refuse_idle("--desired-state", remedy, beside=("--actual",), unless=("CLUSTER",))
    return idle(actual(command))


since = click.option(
    "--since",
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How far to look back: 30d, or the first day, 2026-11-01.",
)


_EXAMPLES = "Pass, for example, 30d or 2026-11-01."


def parse_since(text: str) -> str:
    """Return the first day (UTC) to look at.

    Raises InvalidInput if the text is no time in the past.
    """
    now = datetime.now(UTC)
    try:
        with suppress(ValueError):
            if (day := date.fromisoformat(text)) > now.date():
                raise InvalidInput(f"--since {text} is in the future", _EXAMPLES)
            return day.isoformat()
        return f"{now - parse_duration(text):%Y-%m-%d}"
    except (OverflowError, ValueError):
        raise InvalidInput(f"--since {text} is not a time in the past", _EXAMPLES) from None
