"""The files of a run's folder: each is declared once, for restarts, `prune` and the docs."""

import re
from enum import Enum
from typing import NamedTuple

from quota_ops.model.report import STAGES

_BEFORE, _AFTER = "begin", "always"
_ORDER = (_BEFORE, *STAGES, _AFTER)


class Prune(Enum):
    """What `prune` leaves of a run that wrote, failed, did not end, or was decided about."""

    REMOVE = "removed"
    RECORD = "stays"
    ALTER_RECORD = "stays if the run is an alter"


class RunFile(NamedTuple):
    """A kind of file in the folder of a run."""

    name: str
    """As docs show it. Of what is in angle brackets, NNNN is a number and ID is 32 hex digits."""
    stage: str
    """The first stage that writes it: a restart at this stage or an earlier one moves it away.

    `begin` is before every stage; what is of `always`, no restart moves.
    """
    content: str
    prune: Prune = Prune.REMOVE

    @property
    def pattern(self) -> str:
        """The regular expression of its paths below the folder."""
        text = re.escape(self.name)
        for mark, expression in _MARKS.items():
            text = text.replace(re.escape(mark), expression)
        return text


_MARKS = {"<NNNN>": r"\d{4,}", "<ID>": "[0-9a-f]{32}", "<STAGE>": "[a-z]+", "<PATH>": ".+"}

_RECORD = Prune.RECORD
FILES = (
    RunFile("run.json", _BEFORE, "its name, cluster, start, number and commit", _RECORD),
    RunFile("began.json", _BEFORE, "the commit it began with, and the one applied before it"),
    RunFile("rollback.json", _BEFORE, "the run that it rolls back, by whom and why", _RECORD),
    RunFile("policy.json", "check", "the settings of cluster.yaml", Prune.ALTER_RECORD),
    RunFile("checked.json", "check", "the findings of the files, and the silences"),
    RunFile("desired.parquet", "check", "the quotas that Git declares, for each broker"),
    RunFile("declared.parquet", "check", "them before limits of the whole cluster were divided"),
    RunFile("inventory.parquet", "check", "the clients of an inventory in Git"),
    RunFile("stage-check.json", "check", "how stage check ended"),
    RunFile("described.json", "describe", "the ledger that was read, and the holds in force"),
    RunFile("actual.parquet", "describe", "the quotas that the cluster stored"),
    RunFile("ledger.parquet", "describe", "the rows of the ledger"),
    RunFile("brokers.json", "describe", "the brokers that shared them, and what each leads"),
    RunFile("holds.parquet", "describe", "the entities on hold"),
    RunFile("clusters.parquet", "describe", "the settings that the comparison needs"),
    RunFile("facts.json", "describe", "the brokers, and their settings for quotas"),
    RunFile("metadata.json", "describe", "how far the brokers' replies could be trusted"),
    RunFile("differences.parquet", "diff", "the rows that differ"),
    RunFile("overrides.parquet", "diff", "the unmanaged rows that take clients from declared ones"),
    RunFile("batches.parquet", "diff", "the changes of each request"),
    RunFile("diff-<NNNN>.json", _AFTER, "the attempt of Spark that became the result"),
    RunFile("spark-<ID>/<PATH>", "diff", "what a killed attempt of Spark left"),
    RunFile("plan.json", "plan", "the plan, its digest and the guards"),
    RunFile("findings.json", "plan", "every finding"),
    RunFile("origins.json", "plan", "which run set the values that are not in the ledger"),
    RunFile("effects.json", "plan", "what changes for clients"),
    RunFile("client_effects.json", "plan", "how many clients of the inventory gain and lose"),
    RunFile("client_effects/<ID>/<PATH>", "plan", "the clients of the inventory that it concerns"),
    RunFile("validated.json", "validate", "the replies to the validate-only requests"),
    RunFile("approval.json", "plan", "the decisions about its plan", _RECORD),
    RunFile("claim-<NNNN>.json", _AFTER, "which process has applied it, one at a time"),
    RunFile("batch-<NNNN>.json", "apply", "the outcomes of a request"),
    RunFile("applied.json", "apply", "the outcome of each row", Prune.ALTER_RECORD),
    RunFile("alter.json", "apply", "who altered what, and why", _RECORD),
    RunFile("adopted.json", "apply", "who adopted what, and why", _RECORD),
    RunFile("released.json", "apply", "who released what, and why", _RECORD),
    RunFile("settling-<NNNN>.json", "apply", "what a later run found of its unknown rows"),
    RunFile("verification.json", "verify", "the values that each broker stores after it"),
    RunFile("stage-<STAGE>.json", "describe", "how a stage ended"),
    RunFile("past.json", "report", "the history that its page shows"),
    RunFile("report.json", "report", "the report, for programs"),
    RunFile("report.html", "report", "the page"),
    RunFile("report.md", "report", "the report, for comments"),
    RunFile("report.txt", "report", "the report, as printed"),
    RunFile("audit.json", "report", "what was sent to the audit topic"),
    RunFile("end-<NNNN>.json", _AFTER, "how it ended, as recorded for the audit log", _RECORD),
    RunFile("pruned.json", _AFTER, "when `prune` removed the rest", _RECORD),
)
"""Every file that a run writes; of two that match, the first."""

_DRAFT = re.compile(r"\.[0-9a-f]{32}\.part$")
_ATTEMPT = re.compile(r"attempt-\d{4,}")
_FOLDER = re.compile("|".join(file.pattern.split("/")[0] for file in FILES if "/" in file.name))
_COMPILED = [(re.compile(file.pattern), file) for file in FILES]


def find_run_file(path: str) -> RunFile | None:
    """Return what is at a path below a run's folder; None if no run writes such a file.

    An unfinished draft is what it would have become, to be removed.
    """
    complete = _DRAFT.sub("", path)
    file = next((file for pattern, file in _COMPILED if pattern.fullmatch(complete)), None)
    return file and (file if path == complete else file._replace(prune=Prune.REMOVE))


def find_pruned(path: str) -> Prune | None:
    """Return what `prune` does with a path; None if no run writes such a file.

    Everything that an earlier attempt left is removed.
    """
    first, _, rest = path.partition("/")
    if rest and _ATTEMPT.fullmatch(first):
        return find_run_file(rest) and Prune.REMOVE
    file = find_run_file(path)
    return file and file.prune


def is_run_folder(path: str) -> bool:
    """Return whether runs make a folder at this path below their own."""
    return bool(_ATTEMPT.fullmatch(path) or _FOLDER.fullmatch(path.split("/", 1)[0]))


def stays_on_restart(name: str, stage: str) -> bool:
    """Return whether a run that starts over at a stage keeps this file."""
    file = find_run_file(name)
    if file is None:
        return False
    return file.stage == _AFTER or _ORDER.index(file.stage) < _ORDER.index(stage)
