"""The files of a run's folder: each is declared once, for all that read or keep or show them."""

import re
from enum import Enum
from typing import Any, Generic, Self, TypeVar

from quota_ops.model.clusters.cluster_facts import ClusterFacts, Metadata
from quota_ops.model.commit import Changes
from quota_ops.model.history.past import Past
from quota_ops.model.plans.client_effects import INVENTORY, InventoryEffects
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas import tables
from quota_ops.model.runs import run
from quota_ops.model.runs.end import End
from quota_ops.model.runs.rollback import Rollback
from quota_ops.model.runs.stages import STAGES
from quota_ops.model.runs.verification import Settlement
from quota_ops.model.usage.recorded import RecordedUse
from quota_ops.model.usage.throttling import ThrottledNow, Throttling

Content = TypeVar("Content")
_BEFORE, _AFTER = "begin", "always"
_ORDER = (_BEFORE, *STAGES, _AFTER)


class Prune(Enum):
    """What `prune` leaves of a run that wrote, failed, did not end, or was decided about."""

    REMOVE = "removed"
    RECORD = "stays"
    OPEN_RECORD = "stays if the run is an alter, or its end was not recorded"


class RunFile(str, Generic[Content]):
    """The name of a file in the folder of a run, and what is declared of it.

    As docs show the name, NNNN in angle brackets is a number and ID is 32 hex digits.
    """

    __slots__ = ("content", "kind", "prune", "stage")
    stage: str
    """The first stage that writes it: a restart at this stage or an earlier one moves it away.

    `begin` is before every stage; what is of `always`, no restart moves.
    """
    kind: type[Content]
    """The class of its content, which `model.stored` reads; dict for JSON without a class."""
    content: str
    """What is in it, for docs."""
    prune: Prune

    def __new__(
        cls, name: str, stage: str, kind: type[Content], content: str, prune: Prune
    ) -> Self:
        """Declare a file."""
        made = super().__new__(cls, name)
        made.stage, made.kind, made.content, made.prune = stage, kind, content, prune
        return made

    def of(self, what: object) -> "RunFile[Content]":
        """Return the file of a number, or of a stage."""
        name = re.sub("<.*>", f"{what:04d}" if isinstance(what, int) else str(what), self)
        return RunFile(name, self.stage, self.kind, self.content, self.prune)

    @property
    def pattern(self) -> str:
        """The regular expression of its paths below the folder."""
        text = re.escape(self)
        for mark, expression in _MARKS.items():
            text = text.replace(re.escape(mark), expression)
        return text


_MARKS = {"<NNNN>": r"\d{4,}", "<ID>": "[0-9a-f]{32}", "<STAGE>": "[a-z]+", "<PATH>": ".+"}

FILES: list[RunFile[Any]] = []
"""Every file that a run writes; of two that match, the first."""


def _declare(
    name: str, stage: str, kind: type[Content], content: str, prune: Prune = Prune.REMOVE
) -> RunFile[Content]:
    file = RunFile(name, stage, kind, content, prune)
    FILES.append(file)
    return file


_RECORD, _OPEN_RECORD = Prune.RECORD, Prune.OPEN_RECORD
ABOUT = _declare(
    "run.json", _BEFORE, run.About, "its name, cluster, start, number and commit", _RECORD
)
BEGAN = _declare(
    "began.json", _BEFORE, run.Beginning, "the commit it began with, and the one applied before it"
)
ROLLBACK = _declare(
    "rollback.json", _BEFORE, Rollback, "the run that it rolls back, by whom and why", _RECORD
)
POLICY = _declare("policy.json", "check", Policy, "the settings of cluster.yaml", _OPEN_RECORD)
CHECKED = _declare(
    "checked.json", "check", run.Checked, "the findings of the files, and the silences"
)
# describe writes it; `describe --run`, which knows no folder of YAML, keeps that of the run.
CHANGES = _declare(
    "commits.json",
    "check",
    Changes,
    "the commits since the last applied one, or that it is lacking",
)
_declare(tables.DESIRED.file, "check", bytes, "the quotas that Git declares, for each broker")
_declare(
    tables.DECLARED.file, "check", bytes, "them before limits of the whole cluster were divided"
)
_declare(INVENTORY.file, "check", bytes, "the clients of an inventory in Git")
_declare("stage-check.json", "check", run.StageEnd, "how stage check ended", _RECORD)
DESCRIBED = _declare(
    "described.json", "describe", run.Described, "the ledger that was read, and the holds in force"
)
_declare(tables.ACTUAL.file, "describe", bytes, "the quotas that the cluster stored")
_declare(tables.LEDGER.file, "describe", bytes, "the rows of the ledger")
BROKERS = _declare(
    "brokers.json", "describe", dict, "the brokers that shared them, and what each leads"
)
_declare(tables.HOLDS.file, "describe", bytes, "the entities on hold")
_declare(tables.CLUSTERS.file, "describe", bytes, "the settings that the comparison needs")
FACTS = _declare(
    "facts.json", "describe", ClusterFacts, "the brokers, and their settings for quotas"
)
METADATA = _declare(
    "metadata.json", "describe", Metadata, "how far the brokers' replies could be trusted"
)
_declare(
    tables.DIFFERENCES.file,
    "diff",
    bytes,
    "the rows that differ, and which request writes each",
    _OPEN_RECORD,
)
_declare(
    tables.OVERRIDES.file, "diff", bytes, "the unmanaged rows that take clients from declared ones"
)
COMPARED = _declare("diff-<NNNN>.json", _AFTER, dict, "the attempt of Spark that became the result")
_declare("spark-<ID>/<PATH>", "diff", bytes, "what a killed attempt of Spark left")
PLAN = _declare(
    "plan.json", "plan", run.StoredPlan, "the digests of it and its rows, and the guards"
)
FINDINGS = _declare("findings.json", "plan", run.Findings, "every finding")
ORIGINS = _declare(
    "origins.json", "plan", run.Origins, "which run set the values that are not in the ledger"
)
EFFECTS = _declare("effects.json", "plan", dict, "what changes for clients")
CLIENT_COUNTS = _declare(
    "client_effects.json",
    "plan",
    InventoryEffects,
    "how many clients of the inventory gain and lose",
)
_declare(
    "client_effects/<ID>/<PATH>", "plan", bytes, "the clients of the inventory that it concerns"
)
THROTTLED = _declare(
    "throttled.json", "plan", ThrottledNow, "which clients were throttled at the time of the plan"
)
THROTTLING = _declare(
    "throttling.json", "plan", Throttling, "whom its cuts would have throttled in the last days"
)
VALIDATED = _declare(
    "validated.json", "validate", run.Outcomes, "the replies to the validate-only requests"
)
APPROVAL = _declare("approval.json", "plan", run.Decisions, "the decisions about its plan", _RECORD)
CLAIM = _declare("claim-<NNNN>.json", _AFTER, dict, "which process has applied it, one at a time")
BATCH = _declare(
    "batch-<NNNN>.json", "apply", run.Outcomes, "the outcomes of a request", _OPEN_RECORD
)
APPLIED = _declare("applied.json", "apply", run.Outcomes, "the outcome of each row", _OPEN_RECORD)
ALTER = _declare("alter.json", _BEFORE, run.Alter, "who altered rows, why, and until when", _RECORD)
ADOPTED = _declare("adopted.json", "apply", run.LedgerEdit, "who adopted what, and why", _RECORD)
RELEASED = _declare("released.json", "apply", run.LedgerEdit, "who released what, and why", _RECORD)
SETTLEMENT = _declare(
    "settlement.json", "apply", Settlement, "what a later run found of its unknown rows"
)
VERIFICATION = _declare(
    "verification.json", "verify", run.Verification, "the values that each broker stores after it"
)
STAGE = _declare("stage-<STAGE>.json", "describe", run.StageEnd, "how a stage ended", _RECORD)
PAST = _declare("past.json", "report", Past, "the history that its page shows")
USE = _declare(
    "use.json", "report", RecordedUse, "what clients used on recorded days, for its page"
)
REPORT = _declare("report.json", "report", dict, "the report, for programs")
PAGE = _declare("report.html", "report", str, "the page")
TEXT = _declare("report.txt", "report", str, "the report, as printed")
AUDITED = _declare("audit.json", "report", run.Audited, "what was sent to the audit topic")
END = _declare(
    "end-<NNNN>.json", _AFTER, End, "how it ended, as recorded for the audit log", _RECORD
)
PRUNED = _declare("pruned.json", _AFTER, run.Pruned, "when `prune` removed the rest", _RECORD)

RECORDS: tuple[RunFile[Any], ...] = (ALTER, ADOPTED, RELEASED)
"""The records of commands without a plan of Git: their runs have one, and others none."""

_DRAFT = re.compile(r"\.[0-9a-f]{32}\.part$")
_ATTEMPT = re.compile(r"attempt-\d{4,}")
_FOLDER = re.compile("|".join(file.pattern.split("/")[0] for file in FILES if "/" in file))
_COMPILED = [(re.compile(file.pattern), file) for file in FILES]


def find_run_file(path: str) -> RunFile[Any] | None:
    """Return what is at a path below a run's folder; None if no run writes such a file.

    An unfinished draft is what it would have become.
    """
    complete = _DRAFT.sub("", path)
    return next((file for pattern, file in _COMPILED if pattern.fullmatch(complete)), None)


def is_claim(path: str) -> bool:
    """Return whether a path below a run's folder is that of a claim."""
    return re.fullmatch(CLAIM.pattern, path) is not None


def find_pruned(path: str) -> Prune | None:
    """Return what `prune` does with a path; None if no run writes such a file.

    Everything that an earlier attempt left is removed, and every draft.
    """
    first, _, rest = path.partition("/")
    is_earlier = bool(rest) and bool(_ATTEMPT.fullmatch(first))
    file = find_run_file(rest if is_earlier else path)
    if file is None:
        return None
    return Prune.REMOVE if is_earlier or _DRAFT.search(path) else file.prune


def is_run_folder(path: str) -> bool:
    """Return whether runs make a folder at this path below their own."""
    return bool(_ATTEMPT.fullmatch(path) or _FOLDER.fullmatch(path.split("/", 1)[0]))


def stays_on_restart(name: str, stage: str) -> bool:
    """Return whether a run that starts over at a stage keeps this file."""
    file = find_run_file(name)
    if file is None:
        return False
    return file.stage == _AFTER or _ORDER.index(file.stage) < _ORDER.index(stage)
