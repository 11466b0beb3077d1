"""What `rollback` does: plan the way back in a run of its own, and say what comes after."""

from collections.abc import Mapping
from pathlib import Path

import click

from quota_ops.cli.layout import TEXT
from quota_ops.cli.running import connection
from quota_ops.cli.show import show_run, warn_idle
from quota_ops.model.approval import Author
from quota_ops.model.errors import GuardsRefused, QuotaOpsError
from quota_ops.runs import rollback
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.runs.run import Run
from quota_ops.store.login import find_login
from quota_ops.store.retention import refuse_pruned
from quota_ops.store.run_names import find_run
from quota_ops.store.run_store import find_run_store, store_of


def roll_back(
    wanted: str,
    *,
    allow: Mapping[str, str],
    by: str,
    reason: str,
    connection_file: Path | None,
    run_store: str | None,
    engine: str,
    output: str,
) -> None:
    """Plan to roll back a run in a new run folder, and show the plan."""
    earlier = find_run(find_run_store(run_store), wanted, last_write=True)
    refuse_pruned(earlier)
    store = store_of(earlier.path, run_store)
    folder = rollback.start(store, earlier, by=by, reason=reason)
    error: QuotaOpsError | None = None
    author = Author(by, find_login())
    with connection(folder.policy, connection_file) as connect:
        run = Run(folder, Path(), store, connect, engine=engine, allow=allow, author=author)
        try:
            run_stages(run, CHAINS["rollback"])
        except QuotaOpsError as raised:
            error = raised
    shown = show_run("rollback", folder, output)
    warn_idle(allow, shown.plan)
    if isinstance(error, GuardsRefused) and output == TEXT:
        raise click.exceptions.Exit(error.exit_code)  # the screen has just said it
    if error is not None:
        raise error
