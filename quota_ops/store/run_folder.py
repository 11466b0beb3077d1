"""A run's folder: the names of its artifacts, and their content as values."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count, takewhile
from time import monotonic
from typing import Any, Self
from uuid import uuid4

from quota_ops.model.approval import Decision
from quota_ops.model.cluster_facts import ClusterFacts
from quota_ops.model.commit import Provenance
from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.errors import Claimed, InvalidInput, describe_damage
from quota_ops.model.finding import Finding, Silence
from quota_ops.model.hold import Hold
from quota_ops.model.metadata import Metadata
from quota_ops.model.moment import iso_utc, timed
from quota_ops.model.outcome import Outcome
from quota_ops.model.plan import Plan
from quota_ops.model.policy import Policy
from quota_ops.model.report import StageResult, StageStatus, explain_failure
from quota_ops.model.rows import BatchRow, OverrideRow, group_by_batch
from quota_ops.model.tables import BATCHES, DIFFERENCES, OVERRIDES
from quota_ops.model.verification import Settlement
from quota_ops.store import parquet, run_numbers
from quota_ops.store.artifacts import ArtifactFolder
from quota_ops.store.json_text import json_text
from quota_ops.store.ledger_end import explain_described
from quota_ops.store.place import Place
from quota_ops.store.run_json import (
    about_from_json,
    checked_from_json,
    findings_from_json,
    outcomes_from_json,
    outcomes_json,
    plan_from_json,
    plan_json,
    provenance_json,
    typed,
)
from quota_ops.store.run_store import RunStore, name_run, store_of
from quota_ops.store.written_by import explain_newer, find_newer, stamp

ABOUT = "run.json"
POLICY = "policy.json"
DESCRIBED = "described.json"
CHECKED = "checked.json"
FACTS = "facts.json"
BROKERS = "brokers.json"
METADATA = "metadata.json"
FINDINGS = "findings.json"
PLAN = "plan.json"
ROLLBACK = "rollback.json"
AUDITED = "audit.json"
ALTER = "alter.json"
"""The author and changes of an alter: entity, key, values before and after (null: deleted)."""
ADOPTED = "adopted.json"
RELEASED = "released.json"
"""The author and reason of each row that was added to the ledger, or removed from it."""
VALIDATED = "validated.json"
APPROVAL = "approval.json"
APPLIED = "applied.json"
VERIFICATION = "verification.json"
REPORT = "report.json"
PAGE = "report.html"
_log = logging.getLogger(__name__)


def stage_file(stage: str) -> str:
    """Return the name of the artifact with the end of a stage."""
    return f"stage-{stage}.json"


def batch_file(number: int) -> str:
    """Return the name of the artifact with the outcomes of a batch, from 1 on."""
    return f"batch-{number:04d}.json"


def settling_file(number: int) -> str:
    """Return the name of the artifact with what a later run found, from 1 on."""
    return f"settling-{number:04d}.json"


_KINDS, _ACTIONS = ({one.value: one for one in words} for words in (Kind, Action))


@dataclass(frozen=True, slots=True)
class RunFolder(ArtifactFolder):
    """One run's artifacts."""

    only_read: RunStore | None = field(default=None, compare=False)
    """The run store, if this run's folder is outside it: the run takes no number there."""
    require_claim: Callable[[], object] = field(default=lambda: None, compare=False, repr=False)
    """Raises Claimed if another process has taken over this run from this one."""

    @property
    def store(self) -> RunStore:
        """The run store; InvalidInput if the folder is in none."""
        return self.only_read or store_of(self.place)

    def explain_damage(self, name: str, error: Exception) -> InvalidInput:
        """Return the error for a file that does not parse; a newer version may have written it."""
        with suppress(InvalidInput):
            if newer := find_newer(self.read_json(ABOUT)):
                return explain_newer(self.place / name, newer, describe_damage(error))
        return super(RunFolder, self).explain_damage(name, error)

    @classmethod
    def start(
        cls,
        place: Place,
        *,
        cluster: str,
        commit: str | None,
        redo: bool = False,
        only_read: RunStore | None = None,
        dag_id: str | None = None,
    ) -> Self:
        """Write run.json, unless an earlier attempt that this one continues has written it.

        `commit` was given by a person; otherwise check finds it. `dag_id` names the DAG that runs
        it. Takes the next number of the run store; InvalidInput if the place is in none.
        """
        folder = cls(place, only_read=only_read)
        if redo or not folder.has(ABOUT):
            run = name_run() if only_read else place.name
            about = {"run": run, "cluster": cluster, "started": iso_utc(), "dag_id": dag_id}
            folder._number(stamp(about) | provenance_json(Provenance.given(commit)))
        return folder

    def take_next_number(self, above: int = 0) -> None:
        """Give a run that starts over a new number, larger than `above`."""
        self._number(self.read_json(ABOUT), above)

    def _number(self, about: Mapping[str, Any], above: int = 0) -> None:
        if self.only_read:
            self.write_json(ABOUT, about)
            return
        run = f"{self.place.parent.name}/{self.place.name}"
        content = json_text(stamp({"run": run, "at": iso_utc(), "nonce": uuid4().hex})).encode()
        number = run_numbers.take_number(self.store.sequence, content, above)
        self.write_json(ABOUT, {**about, "sequence": number})

    def note_commit(self, provenance: Provenance, path: str | None = None) -> None:
        """Record in run.json the commit of the files that this run has read, and their path."""
        self.write_json(ABOUT, self.read_json(ABOUT) | provenance_json(provenance) | {"path": path})

    def about(self) -> dict[str, Any]:
        """Return run.json; the fields about its commit as one Provenance."""
        return self.read_cached(ABOUT, lambda: self.read_as(ABOUT, about_from_json))

    def policy(self) -> Policy:
        """Return the policy that check recorded."""
        return self.read_cached(POLICY, lambda: self.read_as(POLICY, Policy.from_json))

    def leave_policy(self, policy: Policy) -> None:
        """Write policy.json, and its cluster id to run.json: a name may be that of two clusters."""
        self.write_json(ABOUT, self.read_json(ABOUT) | {"cluster_id": policy.cluster_id})
        self.write_json(POLICY, policy.as_json())

    def checked(self) -> tuple[tuple[Finding, ...], tuple[Silence, ...]]:
        """Return the findings of the files, and every silence, that check recorded."""
        return self.read_as(CHECKED, checked_from_json)

    def findings(self) -> tuple[Finding, ...]:
        """Return every finding, silenced or not, that plan recorded."""
        return self.read_as(FINDINGS, findings_from_json)

    def facts(self) -> ClusterFacts | None:
        """Return the facts about the brokers besides quotas; None if describe got none."""
        return self.read_as(FACTS, ClusterFacts.from_json) if self.has(FACTS) else None

    def described(self) -> tuple[str | None, tuple[Hold, ...]]:
        """Return the ledger file that describe read, and the holds that were in force then."""
        return self.read_cached(DESCRIBED, lambda: self.read_as(DESCRIBED, _described))

    def old_ledger(self) -> str | None:
        """Return why the ledger that describe read may be an older copy; None if it is not."""
        return self.read_as(DESCRIBED, explain_described)

    def metadata(self) -> Metadata:
        """Return how far the brokers' descriptions could be trusted at the last query."""
        return self.read_as(METADATA, Metadata.from_json)

    def plan(self) -> tuple[Plan, str]:
        """Return the plan of an earlier stage, and the digest in its file."""
        return self.read_cached(PLAN, self._read_plan)

    def _read_plan(self) -> tuple[Plan, str]:
        plan, digest = self.read_as(PLAN, plan_from_json)
        return replace(plan, overridden=self.count_overridden(plan.differences)), digest

    def leave_plan(self, plan: Plan) -> None:
        """Write plan.json."""
        self.write_json(PLAN, plan_json(plan))
        self.read_cached(PLAN, lambda: (plan, plan.digest))

    def outcomes(self, name: str) -> tuple[Outcome, ...]:
        """Return the outcomes of an earlier stage; empty if it did not run."""
        if not self.has(name):
            return ()
        return self.read_cached(name, lambda: self.read_as(name, outcomes_from_json))

    def settlement(self) -> Settlement | None:
        """Return what a later run found of the writes without a response; None if none looked."""
        files = takewhile(self.has, map(settling_file, count(1)))
        last = max(files, default=None)
        return self.read_as(last, Settlement.from_json) if last else None

    def leave_outcomes(self, name: str, outcomes: tuple[Outcome, ...]) -> None:
        """Write outcomes; no two attempts write the same bytes."""
        self.write_json(name, {"attempt": uuid4().hex, **outcomes_json(outcomes)})
        self.read_cached(name, lambda: outcomes)

    def decisions(self) -> tuple[Decision, ...]:
        """Return the decisions about this run's plan, in order."""
        if not self.has(APPROVAL):
            return ()
        return self.read_as(
            APPROVAL, lambda values: tuple(map(Decision.from_json, values["decisions"]))
        )

    def differences(self) -> tuple[Difference, ...]:
        """Return the rows of DIFFERENCES."""
        return self.read_cached(DIFFERENCES.file, self._differences)

    def _differences(self) -> tuple[Difference, ...]:
        table = self.read_table(DIFFERENCES)
        columns = {name: parquet.to_values(table[name]) for name in table.column_names}
        try:
            columns["kind"] = [_KINDS.get(one) or Kind(one) for one in columns["kind"]]
            columns["action"] = [_ACTIONS.get(one) or Action(one) for one in columns["action"]]
            return tuple(map(Difference._make, zip(*columns.values(), strict=True)))
        except ValueError as error:
            raise InvalidInput(f"{self.place / DIFFERENCES.file} is damaged: {error}") from error

    def overrides(self) -> tuple[OverrideRow, ...]:
        """Return the rows of OVERRIDES; empty for a run without a diff of Git and the cluster."""
        if not self.has(OVERRIDES.file):
            return ()
        return self.read_cached(OVERRIDES.file, lambda: tuple(self.read_rows(OVERRIDES)))

    def count_overridden(self, differences: Iterable[Difference]) -> int:
        """Return of how many rows, stored as in Git, overriding rows take clients."""
        taken = {row.declared_id for row in self.overrides()}
        return len(taken - {row.id for row in differences if row.kind is not Kind.IN_SYNC})

    def batches(self) -> dict[int, tuple[BatchRow, ...]]:
        """Return the rows of BATCHES, grouped by batch number in ascending order."""
        return self.read_cached(BATCHES.file, lambda: group_by_batch(self.read_rows(BATCHES)))

    @contextmanager
    def stage(self, stage: str) -> Iterator[None]:
        """Record how a stage ended and how long it took, whatever it raises except Claimed.

        Until then, apply, which writes to the cluster, is NOT_ENDED.
        """
        self.require_claim()
        began = monotonic()
        if stage == "apply":
            self.keep_end(StageResult(stage, StageStatus.NOT_ENDED))
        try:
            with timed(_log, logging.INFO, f"stage {stage}"):
                yield
        except Claimed:  # the stage is that of the process that has taken over
            raise
        except BaseException as error:
            status, message = explain_failure(error)
            with suppress(InvalidInput):  # a failing store must not hide this error
                self.keep_end(StageResult(stage, status, round(monotonic() - began, 3), message))
            raise
        self.keep_end(StageResult(stage, StageStatus.DONE, round(monotonic() - began, 3)))

    def keep_end(self, result: StageResult) -> None:
        """Record how a stage ended."""
        self.write_json(stage_file(result.stage), result._asdict() | {"at": iso_utc()})

    def stage_result(self, stage: str) -> StageResult:
        """Return how a stage of this run ended; NOT_RUN if it did not begin."""
        if not self.has(stage_file(stage)):
            return StageResult(stage, StageStatus.NOT_RUN)
        return self.read_as(
            stage_file(stage),
            lambda kept: StageResult(
                stage,
                StageStatus(kept["status"]),
                typed(kept["seconds"], float | int | None),
                typed(kept["message"], str | None),
            ),
        )


def _described(values: dict[str, Any]) -> tuple[str | None, tuple[Hold, ...]]:
    return typed(values["ledger"], str | None), tuple(map(Hold.from_json, values["holds"]))
