"""A run's folder: the names of its artefacts, and how each is read and written."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, Self, TypeVar

import pyarrow as pa

from quota_ops import artefact, parquet
from quota_ops.model.cluster_facts import ClusterFacts
from quota_ops.model.difference import Action, Difference, Kind
from quota_ops.model.errors import InvalidInput, QuotaOpsError, Refused
from quota_ops.model.finding import Finding, Silence
from quota_ops.model.hold import Hold
from quota_ops.model.metadata import Metadata
from quota_ops.model.outcome import Outcome
from quota_ops.model.policy import Policy
from quota_ops.model.report import StageResult, StageStatus
from quota_ops.model.rows import BatchRow
from quota_ops.model.tables import BATCHES, DIFFERENCES, Table
from quota_ops.run_json import checked_from_json, findings_from_json, outcomes_from_json, typed

Parsed = TypeVar("Parsed")

ABOUT = "run.json"
POLICY = "policy.json"
DESCRIBED = "described.json"
CHECKED = "checked.json"
FACTS = "facts.json"
METADATA = "metadata.json"
FINDINGS = "findings.json"
PLAN = "plan.json"
ROLLBACK = "rollback.json"
AUDITED = "audit.json"
VALIDATED = "validated.json"
APPROVAL = "approval.json"
APPLIED = "applied.json"
VERIFIED = "verification.json"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One run's artefacts; every write is whole or not at all."""

    path: Path

    @classmethod
    def start(cls, path: Path, *, cluster: str, commit: str | None) -> Self:
        """Say in run.json what run this is, unless an earlier attempt has said it."""
        folder = cls(path)
        if not folder.has(ABOUT):
            folder.write_json(
                ABOUT,
                {
                    "run": path.name,
                    "cluster": cluster,
                    "commit": commit,
                    "started": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
                },
            )
        return folder

    def about(self) -> dict[str, Any]:
        """What run.json says: run, cluster, commit, started."""
        return self.read_as(
            ABOUT,
            lambda about: {
                "run": typed(about["run"], str),
                "cluster": typed(about["cluster"], str),
                "commit": typed(about["commit"], str | None),
                "started": typed(about["started"], str),
            },
        )

    def policy(self) -> Policy:
        """The policy that check left."""
        return self.read_as(POLICY, Policy.from_json)

    def checked(self) -> tuple[tuple[Finding, ...], tuple[Silence, ...]]:
        """The findings of the files, and every silence, that check left."""
        return self.read_as(CHECKED, checked_from_json)

    def findings(self) -> tuple[Finding, ...]:
        """Every finding, silenced or not, that plan left."""
        return self.read_as(FINDINGS, findings_from_json)

    def facts(self) -> ClusterFacts | None:
        """What the brokers said besides quotas; None when describe asked none, or got no answer."""
        return self.read_as(FACTS, ClusterFacts.from_json) if self.has(FACTS) else None

    def described(self) -> tuple[str | None, tuple[Hold, ...]]:
        """The ledger file that describe read, and the holds that lasted then."""
        return self.read_as(
            DESCRIBED,
            lambda told: (
                typed(told["ledger"], str | None),
                tuple(map(Hold.from_json, told["holds"])),
            ),
        )

    def metadata(self) -> Metadata:
        """How far what the brokers describe could be trusted when they were last asked."""
        return self.read_as(METADATA, Metadata.from_json)

    def outcomes(self, name: str) -> tuple[Outcome, ...]:
        """The outcomes that an earlier stage left; none when it did not run."""
        return self.read_as(name, outcomes_from_json) if self.has(name) else ()

    def has(self, name: str) -> bool:
        """Whether the artefact is there."""
        return (self.path / name).exists()

    def write_table(self, table: Table, rows: Sequence[Sequence[Any]]) -> None:
        """Leave a table's rows as NAME.parquet."""
        self.write_arrow(table, parquet.from_rows(table, rows))

    def write_arrow(self, table: Table, arrow: pa.Table) -> None:
        """Leave an Arrow table, and the notes beside its rows, as NAME.parquet."""
        content = parquet.to_bytes(table, arrow, parquet.notes(arrow))
        artefact.write(str(self.path / table.file), content)

    def read_table(self, table: Table) -> pa.Table:
        """A table that an earlier stage left; InvalidInput when it did not, or is damaged."""
        return parquet.from_bytes(table, self._read(table.file), str(self.path / table.file))

    def count(self, table: Table) -> int:
        """How many rows an earlier stage left in a table."""
        return int(self.read_table(table).num_rows)

    def differences(self) -> tuple[Difference, ...]:
        """The rows of DIFFERENCES."""
        rows = parquet.to_rows(self.read_table(DIFFERENCES))
        try:
            return tuple(
                Difference(*row)._replace(kind=Kind(row[3]), action=Action(row[4])) for row in rows
            )
        except ValueError as error:
            raise InvalidInput(f"{self.path / DIFFERENCES.file} is damaged: {error}") from error

    def batches(self) -> dict[int, tuple[BatchRow, ...]]:
        """The rows of BATCHES by the number of their batch, in order."""
        batches: dict[int, list[BatchRow]] = {}
        for row in map(BatchRow._make, parquet.to_rows(self.read_table(BATCHES))):
            batches.setdefault(row.batch, []).append(row)
        return {number: tuple(batches[number]) for number in sorted(batches)}

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Leave a JSON artefact that people can read: a field a line, a list's item a line."""
        self.write_text(name, json_text(value))

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON artefact that an earlier stage left; InvalidInput when not, or damaged."""
        try:
            value = json.loads(self._read(name))
        except ValueError as error:
            raise InvalidInput(f"{self.path / name} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.path / name} holds no JSON object")
        return value

    def read_as(self, name: str, parse: Callable[[dict[str, Any]], Parsed]) -> Parsed:
        """A JSON artefact as what it stands for; InvalidInput when it does not."""
        value = self.read_json(name)
        try:
            return parse(value)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"{self.path / name} is damaged: {error!r}") from error

    def write_text(self, name: str, text: str) -> None:
        """Leave text; half a surrogate pair, which is no text, as the escape that JSON has too."""
        artefact.write(str(self.path / name), text.encode("utf-8", "backslashreplace"))

    def _read(self, name: str) -> bytes:
        try:
            return artefact.read(str(self.path / name))
        except FileNotFoundError:
            raise InvalidInput(
                f"{self.path / name} is missing: the stage that leaves it has not run"
            ) from None

    @contextmanager
    def stage(self, stage: str) -> Iterator[None]:
        """Keep how a stage ended and how long it took, whatever it raises."""
        began = monotonic()
        status, message = StageStatus.DONE, None
        try:
            yield
        except QuotaOpsError as error:
            status = StageStatus.REFUSED if isinstance(error, Refused) else StageStatus.FAILED
            message = str(error)
            raise
        except BaseException as error:
            status, message = StageStatus.FAILED, f"{type(error).__name__}: {error}"
            raise
        finally:
            result = StageResult(stage, status, round(monotonic() - began, 3), message)
            self.write_json(f"stage-{stage}.json", result._asdict())

    def stage_result(self, stage: str) -> StageResult:
        """How a stage of this run ended; NOT_RUN when it did not begin."""
        if not self.has(f"stage-{stage}.json"):
            return StageResult(stage, StageStatus.NOT_RUN)
        return self.read_as(
            f"stage-{stage}.json",
            lambda kept: StageResult(
                stage,
                StageStatus(kept["status"]),
                typed(kept["seconds"], float | int | None),
                typed(kept["message"], str | None),
            ),
        )


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def json_text(value: Mapping[str, Any]) -> str:
    """A JSON object with a field a line, a list's item a line."""
    lines = ",\n".join(f"{_dumps(field)}: {_lines(one)}" for field, one in value.items())
    return f"{{\n{lines}\n}}\n"


def _dumps(value: object) -> str:
    return _ENCODER.encode(value)


def _lines(value: object) -> str:
    if isinstance(value, list) and value:
        items = ",\n ".join(map(_dumps, value))
        return f"[\n {items}\n]"
    return _dumps(value)
