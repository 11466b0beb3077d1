"""The scene of a fault: the same eight changes each time, and texts for the results."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.kafka import delivery
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.model.quotas.difference import WRITES, Kind
from quota_ops.model.runs.outcome import DONE
from quota_ops.model.text import counted
from quota_ops.report.outline.sentences import warnings
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.runs.run import Run
from quota_ops.sql import text
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.run.files import APPLIED
from quota_ops.store.run.folder import RunFolder
from tests.faults.machine import Machine
from tests.lab import Lab
from tests.writing import State

KEY = "producer_byte_rate"
BEFORE: State = {f"user=u{number}": {KEY: 1.0} for number in range(6)}
AFTER: State = {
    **{f"user=u{number}": {KEY: 1.0} for number in range(2)},
    **{f"user=u{number}": {KEY: 2.0} for number in range(2, 5)},
    **{f"user=u{number}": {KEY: 3.0} for number in range(6, 10)},
}
CHANGED = sorted(one for one in {*BEFORE, *AFTER} if BEFORE.get(one) != AFTER.get(one))
"""Three limits move, four are new, one is cleared; two stay as they are."""
BATCH = 2
"""Keys in a request, so that the changes take four."""


@dataclass(frozen=True)
class Scene:
    """A cluster in the last approved state, a ledger that records it, and changes in Git."""

    lab: Lab
    machine: Machine
    patch: pytest.MonkeyPatch

    def begin(self) -> None:
        """Write every side."""
        self.lab.put(BEFORE)
        self.lab.desire(AFTER)
        self.lab.note(BEFORE)
        small = partial(text.batches_text, max_keys=BATCH)
        self.patch.setattr(text, "batches_text", small)

    def hurry(self, verifying: float = 0.2) -> None:
        """Make runs wait for a silent cluster no longer than a test can."""
        self.patch.setattr(delivery, "PATIENCE", 0.5)
        self.patch.setattr(
            "quota_ops.stages.verify.brokers.compute_deadline", lambda _rows: verifying
        )

    def start(self, **options: Any) -> Run:
        """Return a new run; `connect` may be another way to the cluster."""
        connect = options.pop("connect", None)
        run = self.lab.start(**options)
        return replace(run, connect=connect) if connect else run

    def reconcile(self, **options: Any) -> str:
        """Run a whole reconcile, and return how it ended."""
        return self.go_on(self.start(**options), CHAINS["reconcile"])

    def prepare(self, stages: tuple[str, ...], **options: Any) -> Run:
        """Return a new run that has succeeded so far."""
        run = self.start(**options)
        run_stages(run, stages)
        return run

    def go_on(self, run: Run, stages: tuple[str, ...]) -> str:
        """Run these stages, and return how they ended."""
        error = None
        try:
            run_stages(run, stages)
        except QuotaOpsError as raised:
            error = raised
        return self.told(run.folder, error)

    def told(self, folder: RunFolder, error: QuotaOpsError | None) -> str:
        """Return the exit code, the first line of the error, and the entities by result."""
        outcomes = folder.outcomes(APPLIED)
        report = (folder.place / "report.txt").read().decode()
        unnamed = [
            outcome
            for outcome in outcomes
            if outcome.status not in DONE
            if outcome.entity not in report
        ]
        assert unnamed == []
        if error is None:
            return "exit 0"
        counts = Counter(outcome.status.value.replace("_", " ") for outcome in outcomes)
        ends = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        first = self.masked(error.message.partition("\n")[0].rstrip(":."))
        return f"exit {error.exit_code}: {first}" + (f" ({ends})" if ends else "")

    def warned(self, folder: RunFolder) -> str:
        """Return what the report shows of the brokers."""
        return self.masked(" ".join(warnings(read_report(folder))))

    def masked(self, said: str) -> str:
        """Return a message without what differs each time."""
        said = said.replace(str(self.lab.store.root), "STORE/store")
        said = said.replace(str(self.lab.root), "STORE")
        said = re.sub(r"(can be read): .*", r"\1", said)
        said = re.sub(r"timed out after [\d.]+ s", "timed out", said)
        said = re.sub(r"\S*/(ledgers?|runs)/\S*?(?=:| |$)", r"\1/FILE", said)
        said = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", said)
        said = re.sub(r"\brun \d{4}-[-\dT]+Z-[0-9a-f]{4}", "run NAME", said)
        said = re.sub(r"[\d.]+ s ago", "some seconds ago", said)
        return re.sub(r"(?i)(broker|node) \d(, \d)*", r"\1 N", said).replace("|", "/")

    def holds(self, others: State | None = None) -> str:
        """Return how many changes the cluster stores; assert that nothing else was changed."""
        stored = self.lab.stored()
        theirs = others or {}
        for entity in {*stored, *BEFORE, *AFTER} - theirs.keys():
            assert stored.get(entity) in (BEFORE.get(entity), AFTER.get(entity))
        assert {one: stored.get(one) for one in theirs} == theirs
        ours = [one for one in CHANGED if one not in theirs]
        done = sum(stored.get(one) == AFTER.get(one) for one in ours)
        return f"{done} of {len(ours)} changes" + (", and the manual one" if theirs else "")

    def next_run(self) -> str:
        """Run again; assert that cluster and ledger then match Git."""
        folder = self.lab.run("reconcile")
        assert self.lab.stored() == self.lab.known() == AFTER
        assert self.lab.known(INTENDED) == {}
        sent = folder.outcomes(APPLIED)
        assert {outcome.status for outcome in sent} <= DONE
        found = sum(row.action not in WRITES for row in folder.differences())
        late = sum(row.kind is Kind.LATE_WRITE for row in folder.differences())
        words = f"sent {len(sent)}" + (f", recognized {found}" if found else "")
        words += f", reported {counted(late, 'late write')}" if late else ""
        return f"{words}; all as Git declares" if sent or found else "nothing left to do"
