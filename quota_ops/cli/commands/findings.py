"""The command that explains findings."""

import click

from quota_ops.cli import options
from quota_ops.cli.console import show_result


@options.command("""
  quota-ops findings          every code
  quota-ops findings QO105    one of them in full""")
@click.argument("code", required=False)
@options.table_format
def findings(code: str | None, output: str) -> None:
    """Explain the findings of check and plan.

    What each finding means, why it matters, what to do, and how to silence it with a reason,
    for an entity or for a whole cluster.
    """
    from quota_ops.findings.codes import CODES
    from quota_ops.model.errors import InvalidInput
    from quota_ops.report.outline.findings import code_screen, codes_screen

    wanted = None if code is None else CODES.get(code.upper())
    if code is not None and wanted is None:
        raise InvalidInput(
            f"{code!r} is not a finding code", "List the codes with quota-ops findings."
        )
    explained = [each._asdict() for each in (CODES.values() if wanted is None else [wanted])]
    show_result(
        output,
        text=lambda: codes_screen() if wanted is None else code_screen(wanted),
        json=lambda: {"findings": explained},
        rows=lambda: explained,
    )
