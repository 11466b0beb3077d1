"""The options of the commands that run stages."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from quota_ops.cli import options

if TYPE_CHECKING:
    from quota_ops.cli.session import Session
    from quota_ops.model.plans.approval import Author

approve = click.option(
    "--approve", metavar="DIGEST", help="Write only if the plan has this digest, printed by `plan`."
)


def comparing(command: options.Command) -> options.Command:
    """Add the options of a comparison to a command."""
    return options.commit(options.engine(command))


_OVERRIDE_IN_PLAN = "Override in plan: quota-ops plan --run RUN --allow GUARD --reason TEXT."
_IDLE_ON_RUN = {
    "--allow": (("plan", "apply", "reconcile"), _OVERRIDE_IN_PLAN),
    "--reason": (("plan", "apply", "reconcile"), _OVERRIDE_IN_PLAN),
    "--by": (("plan", "apply", "reconcile"), _OVERRIDE_IN_PLAN),
    "--commit": ((), "Leave it out: a run keeps the commit that it began with."),
    "--engine": (("diff",), "Leave it out: this run already has a diff."),
    "--desired-state": ((), "Leave it out: a run keeps the files that it has read."),
    "--out": ((), "Leave it out: this run has a folder."),
    "--as-of": ((), "Leave it out: the run of --run already has a time."),
    "--actual": ((), "Leave out --run: a plan of a snapshot is a new run."),
    "--connection": (
        ("validate", "apply", "verify", "reconcile"),
        "Leave it out: this stage does not use the cluster.",
    ),
}
"""Which commands read an option on an earlier run too, and what to do on the others."""


class StageOptions(Struct, frozen=True):
    """The options of a command that runs stages, as they were typed; not every command has all."""

    session: "Session"
    run_folder: str | None
    output: str
    out: str | None = None
    commit: str | None = None
    engine: str = "embedded"
    allow: tuple[str, ...] = ()
    reason: str | None = None
    by: str | None = None
    approve: str | None = None
    """The digest of a plan."""
    detailed_exitcode: bool = False
    actual: Path | None = None
    as_of: str | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInput if a reason is missing or has no effect."""
        _ = self.allowed

    @property
    def allowed(self) -> dict[str, str]:
        """The guards to override, each with the reason."""
        return options.parse_allowed(self.allow, self.reason, self.approve)

    @property
    def author(self) -> "Author":
        """Who approves a plan or overrides guards."""
        from quota_ops.model.plans.approval import Author, find_login

        return Author(self.by, find_login())


def stage_command(
    *more: Callable[[Any], Any], examples: str, run: Any = options.run, has_body: bool = False
) -> Callable[[Callable[..., None]], click.Command]:
    """Declare a command that runs all stages up to its own, or its own alone with --run.

    Its function has a help text alone, unless it `has_body`, which then takes the options.
    """

    def declare(function: Callable[..., None]) -> click.Command:
        name = function.__name__
        wrapped: Any = function if has_body else _run_stages_of(function)
        cluster = options.on_cluster(options.connection, required=False)
        for decorator in reversed((cluster, run, *more, options.table_format)):
            wrapped = decorator(wrapped)
        there = [option for param in wrapped.__click_params__ for option in param.opts]
        for option, (readers, remedy) in reversed(_IDLE_ON_RUN.items()):
            if option in there and name not in readers:
                wrapped = options.refuse_idle(option, remedy, beside=("--run",))(wrapped)
        return options.command(examples)(wrapped)

    return declare


def _run_stages_of(function: Callable[[], None]) -> Callable[..., None]:
    @wraps(function)
    def run(**typed: Any) -> None:
        from quota_ops.cli.stage_run import run_command

        run_command(function.__name__, StageOptions(**typed))

    return run
