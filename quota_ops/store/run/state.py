"""The state of a run, from its files: how far it got, what it wrote, and what was read back.

Everything that lists, reports, settles, undoes or removes a run takes it from here.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cached_property, partial
from itertools import count, takewhile
from typing import TypeVar

from msgspec.structs import replace

from quota_ops.model.errors import InvalidInput
from quota_ops.model.quotas.rows import Keys
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.runs.outcome import (
    Outcome,
    Status,
    build_outcomes,
    find_written,
    settle_unknown,
)
from quota_ops.model.runs.run import Outcomes, Verification
from quota_ops.model.runs.stages import CUT_OFF, Life, StageResult, StageStatus
from quota_ops.store.places.place import Place
from quota_ops.store.run import files, marks
from quota_ops.store.run.claim import has_process_ended, is_at_work, measure_silence
from quota_ops.store.run.files import RunFile
from quota_ops.store.run.folder import RunFolder

Content = TypeVar("Content")

GRACE = timedelta(hours=1)
"""How long a run that has written may take until its report, if no process of it is visible."""


class Phase(StrEnum):
    """How far a run got; the text is what a list of runs shows of a run without a report."""

    BEGUN = "unfinished"
    COMPARED = "compared"
    PLANNED = "planned"
    WRITING = "Running"
    """It has not recorded the end of its writes, and its process may be alive."""
    INTERRUPTED = "Interrupted"
    """By a signal, or its process died before it recorded the end of its writes; not read back."""
    WRITTEN = "not read back"
    VERIFIED = "verified"
    PRUNED = "pruned"


def _raise(_: str, damage: InvalidInput) -> None:
    raise damage


@dataclass(eq=False)
class RunState:
    """How far a run got, and what it wrote; each file is read once, when it is needed.

    `on_damage` gets the name of a damaged file, and the error; unless it raises that, as it does by
    default, the file counts as missing.
    """

    folder: RunFolder
    on_damage: Callable[[str, InvalidInput], None] = _raise

    def read(self, name: str, read: Callable[[], Content]) -> Content | None:
        """Return what `read` returns of a file; None if it is missing."""
        try:
            return read() if self.folder.has(name) else None
        except InvalidInput as error:
            self.on_damage(name, error)
            return None

    def find(self, file: RunFile[Content]) -> Content | None:
        """Return the content of a file; None if it is missing."""
        return self.read(file, partial(self.folder.read, file))

    def stage(self, name: str) -> StageResult:
        """Return how a stage ended; NOT_RUN if it did not begin."""
        found = self.read(files.STAGE.of(name), partial(self.folder.stage_result, name))
        return found or StageResult(name, StageStatus.NOT_RUN)

    @cached_property
    def apply(self) -> StageResult:
        """How apply ended; NOT_ENDED from before its first request until the end is recorded."""
        return self.stage("apply")

    @property
    def is_writing(self) -> bool:
        """Whether it has begun to write and not recorded the end; it may have died since."""
        return self.apply.status is StageStatus.NOT_ENDED

    @cached_property
    def life(self) -> Life | None:
        """Whether its process is alive; None if it does not write, or has recorded the end."""
        if not self.is_writing:
            return None
        return Life.RUNNING if is_at_work(self.folder) else Life.GONE

    @property
    def has_sent(self) -> bool:
        """Whether it began to send requests, so that it may have changed its cluster."""
        return self.folder.has(files.APPLIED) or self.folder.has(files.BATCH.of(1))

    @property
    def may_have_written(self) -> bool:
        """Whether it changed its cluster or may have: until it records its end, it may have."""
        is_open = self.is_writing or not self.folder.has(files.APPLIED)
        return self.has_sent and (is_open or bool(self.written or self.unknown))

    @cached_property
    def outcomes(self) -> tuple[Outcome, ...]:
        """The outcome of each entity, even while it writes: a batch without one was not sent.

        One that was unknown is known once verify has read back what it wrote.
        """
        found, read = self._list_outcomes(), self.read_back
        if read is None or not read.brokers:
            return found
        wrong = {verdict.id for verdict in read.verdicts}
        return tuple(settle_unknown(found, wrong, "found by verify"))

    def _list_outcomes(self) -> tuple[Outcome, ...]:
        if not self.is_writing:
            return self.read_outcomes(files.APPLIED)
        recorded = [*takewhile(self.folder.has, map(files.BATCH.of, count(1)))]
        batches = self.read(DIFFERENCES.file, self.folder.batches) or {}
        return (
            *(outcome for file in recorded for outcome in self.read_outcomes(file)),
            *(
                outcome
                for number, rows in batches.items()
                if number > len(recorded)
                for outcome in build_outcomes(number, rows, Status.NOT_SENT, None)
            ),
        )

    def read_outcomes(self, file: RunFile[Outcomes]) -> tuple[Outcome, ...]:
        """Return the outcomes in a file; empty if it is missing."""
        return self.read(file, partial(self.folder.outcomes, file)) or ()

    @property
    def written(self) -> Keys:
        """The rows whose new value a broker accepted; of an alter, those with another value."""
        written = frozenset(find_written(self.outcomes))
        return written & self.changing if self.folder.has(files.ALTER) else written

    @cached_property
    def changing(self) -> Keys:
        """The rows that get another value; an alter also sends values that are stored."""
        rows = self.read(DIFFERENCES.file, self.folder.differences) or ()
        return frozenset(row.id for row in rows if row.changes_value)

    @property
    def unknown(self) -> Keys:
        """The rows that may have been written, which is unknown."""
        outcomes = (outcome for outcome in self.outcomes if outcome.may_be_written)
        return frozenset(row for outcome in outcomes for row in outcome.rows)

    @property
    def attempt(self) -> str | None:
        """The attempt of apply that applied.json is of; None if that is missing."""
        found = self.find(files.APPLIED)
        return found.attempt if found else None

    @cached_property
    def verification(self) -> Verification | None:
        """What verify read back last; None if it did not run."""
        return self.find(files.VERIFICATION)

    @property
    def read_back(self) -> Verification | None:
        """What verify read back since the last apply began; None if nothing, or while it runs."""
        found = self.verification
        return found if found and not found.earlier and self.life is not Life.RUNNING else None

    def find_verified(self, rows: Keys) -> Keys:
        """Return the rows that had the desired value when verify compared the last outcomes."""
        found = self.verification
        if not rows or not found or found.applied != self.attempt:
            return frozenset()
        return rows - {verdict.id for verdict in found.verdicts}

    @property
    def is_cut_off(self) -> bool:
        """Whether its process died while it wrote, or before it recorded the end of the run.

        A run that has written, and has yet to be reported, has `GRACE`: between two tasks of a DAG
        run no process is at work. A run that ended with unknown rows has recorded that.
        """
        with suppress(InvalidInput):
            if marks.is_unsettled(self.folder.place) or is_at_work(self.folder):
                return False
            is_command = self.folder.about().dag_id is None
            if self.is_writing or (is_command and has_process_ended(self.folder)):
                return True
            return measure_silence(self.folder) > GRACE
        return False

    @property
    def phase(self) -> Phase:
        """How far it got."""
        is_cut_off = self.is_writing or self.apply.status in CUT_OFF
        if is_cut_off and self.read_back is None:
            return Phase.WRITING if self.life is Life.RUNNING else Phase.INTERRUPTED
        reached = (
            (files.VERIFICATION, Phase.VERIFIED),
            (files.APPLIED, Phase.WRITTEN),
            (files.BATCH.of(1), Phase.BEGUN),
            (files.PLAN, Phase.PLANNED),
            (DIFFERENCES.file, Phase.COMPARED),
            (files.PRUNED, Phase.PRUNED),
        )
        return next((phase for file, phase in reached if self.folder.has(file)), Phase.BEGUN)


def mark_superseded(folder: RunFolder) -> None:
    """Mark verification.json as superseded: apply or verify begins again.

    `RunState.find_verified` still uses its verdicts; a report shows how much it verified, and when.
    """
    found = None
    with suppress(InvalidInput):  # damaged, which the report shows
        found = folder.find(files.VERIFICATION)
    if found and not found.earlier:
        folder.write(files.VERIFICATION, replace(found, earlier=True))


def list_cut_off(root: Place) -> Iterator[RunFolder]:
    """Yield the runs in a store that died while writing. Raises like `Place.walk`."""
    return (run for run in map(RunFolder, marks.find_marked_runs(root)) if RunState(run).is_cut_off)
