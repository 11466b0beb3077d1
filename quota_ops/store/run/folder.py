"""A run's folder: its files, declared in `run.files`, and their content as values."""

import dataclasses
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic
from typing import Any, Self, TypeVar
from uuid import uuid4

import pyarrow as pa
from msgspec.structs import asdict, replace

from quota_ops.findings.codes import CODES
from quota_ops.model.commit import Provenance
from quota_ops.model.errors import Claimed, InvalidInput, describe_damage
from quota_ops.model.finding import Finding
from quota_ops.model.moment import iso_utc, timed
from quota_ops.model.plans.approval import Author, Decision
from quota_ops.model.plans.plan import Plan, rank_by_risk
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.difference import Action, Difference, Kind, group_by_batch
from quota_ops.model.quotas.rows import Key, OverrideRow, Side
from quota_ops.model.quotas.tables import DIFFERENCES, LEDGER, OVERRIDES, Row, Table
from quota_ops.model.runs.outcome import Outcome
from quota_ops.model.runs.run import About, Alter, LedgerEdit, Outcomes, StageEnd, StoredPlan
from quota_ops.model.runs.stages import StageResult, StageStatus, explain_failure
from quota_ops.model.runs.verification import Settlement
from quota_ops.model.stored import from_json, to_json
from quota_ops.store.places import parquet, written_by
from quota_ops.store.places.json_text import json_text
from quota_ops.store.places.place import Place, explain_lost
from quota_ops.store.places.run_store import ClusterStore, RunStore, name_run, safe_name, store_of
from quota_ops.store.run import files
from quota_ops.store.run import order as run_numbers

Parsed = TypeVar("Parsed")
Content = TypeVar("Content")
_log = logging.getLogger(__name__)
_KINDS, _ACTIONS = ({word.value: word for word in words} for words in (Kind, Action))
_DERIVED = {files.PLAN: "plan", DIFFERENCES.file: "batches", LEDGER.file: "owner changes"}
"""The values that are made of several artifacts, by the one whose change makes them invalid."""


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The artifacts of one run, by name; each is written completely or not at all."""

    place: Place
    kept: dict[str | Table[Any], Any] | None = field(default=None, compare=False, repr=False)
    """The parsed artifacts that this process wrote or read, by name, and the opened run store.

    None to remember nothing.
    """
    names: frozenset[str] | None = field(default=None, compare=False, repr=False)
    """The names of the artifacts, if they were listed and do not change; None to look up each."""
    written: set[str] = field(default_factory=set, compare=False, repr=False)
    """The names of the artifacts that this process has written since `require_written`."""
    only_read: RunStore | None = field(default=None, compare=False)
    """The run store, if this run's folder is outside it: the run takes no number there."""
    require_claim: Callable[[], object] = field(default=lambda: None, compare=False, repr=False)
    """Raises Claimed if another process has taken over this run from this one."""

    def with_cache(self) -> Self:
        """Return the same folder, for a process that runs several stages.

        It parses no artifact twice, even if another process changes the file meanwhile.
        """
        return self if self.kept is not None else dataclasses.replace(self, kept={})

    def read_cached(self, what: str | Table[Any], read: Callable[[], Parsed]) -> Parsed:
        """Return a parsed artifact: the remembered one, or else the result of `read`."""
        if self.kept is None:
            return read()
        if what not in self.kept:
            self.kept[what] = read()
        kept: Parsed = self.kept[what]
        return kept

    def has(self, name: str) -> bool:
        """Return whether the artifact exists.

        Raises InvalidInput if this process cannot find out.
        """
        return (self.place / name).exists() if self.names is None else name in self.names

    def write_table(self, table: Table[Any], rows: Sequence[Sequence[Any]]) -> None:
        """Write a table's rows to NAME.parquet."""
        self.write_arrow(table, parquet.from_rows(table, rows))

    def write_arrow(self, table: Table[Any], arrow: pa.Table) -> None:
        """Write an Arrow table, with the notes in its metadata, to NAME.parquet."""
        content = parquet.to_bytes(table, arrow, parquet.notes(arrow))
        self._write(table.file, content)
        if self.kept is not None:
            self.kept[table] = arrow

    def read_table(self, table: Table[Any]) -> pa.Table:
        """Return the table of an earlier stage. Raises InvalidInput if it is missing or damaged."""
        place = str(self.place / table.file)
        return self.read_cached(
            table, lambda: parquet.from_bytes(table, self._read(table.file), place)
        )

    def read_rows(self, table: Table[Row]) -> Iterator[Row]:
        """Return the rows of an earlier stage's table. Raises as `read_table`."""
        return parquet.read_rows(table, self.read_table(table))

    def read_values(self, table: Table[Any]) -> dict[Key, float]:
        """Return the values of ACTUAL or DESIRED by entity and key. Raises as `read_table`."""
        rows = parquet.to_rows(self.read_table(table), "entity", "key", "value")
        return {Key(entity, key): value for entity, key, value in rows}

    def count(self, table: Table[Any]) -> int:
        """Return the number of rows in the table of an earlier stage."""
        return int(self.read_table(table).num_rows)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        """Write readable JSON: each field, and each item of a list, on a line of its own."""
        self.write_text(name, json_text(value))

    def read_json(self, name: str) -> dict[str, Any]:
        """Return the JSON of an earlier stage. Raises InvalidInput if it is missing or damaged."""
        try:
            value = json.loads(self._read(name))
        except (RecursionError, ValueError) as error:
            raise InvalidInput(f"{self.place / name} is not valid JSON: {error}") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{self.place / name} is not a JSON object")
        return value

    def read_as(self, name: str, parse: Callable[[dict[str, Any]], Parsed]) -> Parsed:
        """Return a JSON artifact parsed by `parse`. Raises InvalidInput as `read_json`."""
        value = self.read_json(name)
        try:
            return parse(value)
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            raise self.explain_damage(name, error) from error

    def explain_damage(self, name: str, error: Exception) -> InvalidInput:
        """Return the error for a JSON artifact that decodes, but not to what is written now.

        A newer version may have written it.
        """
        why = describe_damage(error)
        with suppress(InvalidInput):
            if newer := written_by.find_newer(self.read_json(files.ABOUT)):
                return written_by.explain_newer(self.place / name, newer, why)
        return written_by.explain_form(self.place / name, why)

    def write_text(self, name: str, text: str) -> None:
        """Write text as UTF-8; half a surrogate pair becomes its escape, as in JSON."""
        self._write(name, text.encode("utf-8", "backslashreplace"))

    def _write(self, name: str, content: bytes) -> None:
        (self.place / name).replace(content)
        self.written.add(name)
        self._drop_cached(name)

    def require_written(self) -> None:
        """Raise InvalidInput if the store lost an artifact that it has confirmed.

        Without this, a lost list of outcomes would look as if nothing had been sent.
        """
        if lost := self.written.difference(self.place.list() if self.written else ()):
            raise explain_lost(self.place / min(lost))
        self.written.clear()

    def _drop_cached(self, name: str) -> None:
        if self.kept is not None:
            self.kept.pop(name, None)
            self.kept.pop(_DERIVED.get(name, name), None)

    def _read(self, name: str) -> bytes:
        try:
            return (self.place / name).read()
        except FileNotFoundError:
            raise InvalidInput(
                f"{self.place / name} is missing: the stage that writes it has not run"
            ) from None
        except OSError as error:
            raise InvalidInput(f"{self.place / name} cannot be read: {error.strerror}") from error

    @property
    def store(self) -> RunStore:
        """The run store. Raises InvalidInput if the folder is in none."""
        return self.only_read or self.read_cached("store", lambda: store_of(self.place))

    @property
    def records(self) -> ClusterStore:
        """The ledger, claims, holds and approvals of the run's cluster, in the run store."""
        return self.store.of_cluster(self.policy().cluster_id)

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
        author: Author | None = None,
        as_of: str | None = None,
    ) -> Self:
        """Write run.json, unless an earlier attempt that this one continues has written it.

        Only a run of a DAG or outside the store continues one: any other takes a new name if the
        folder has a run. `commit` was given by a person; otherwise check finds it. `dag_id` names
        the DAG that runs it, `author` who does, `as_of` the time of its plan if that is not the
        start. Takes the next number of the run store; InvalidInput if the place is in none.
        """
        folder, is_new = cls(place, only_read=only_read), not (dag_id or only_read)
        if not (redo or is_new) and folder.has(files.ABOUT):
            return folder
        run = name_run() if only_read else place.name
        by, login = author or (None, None)
        about = About(run, cluster, iso_utc(), Provenance.given(commit), dag_id=dag_id)
        by = None if by == login else by  # the default of --by is the login
        about = replace(about, by=by, login=login, as_of=as_of)
        while not folder._number(about, is_new=is_new):
            folder = cls(place.parent / name_run())
            about = replace(about, run=folder.place.name)
        return folder

    def read(self, file: files.RunFile[Content]) -> Content:
        """Return the content of a file. Raises InvalidInput if it is missing or damaged."""
        return self.read_cached(
            file,
            lambda: self.read_as(
                file, lambda values: from_json(file.kind, written_by.without_version(values))
            ),
        )

    def find(self, file: files.RunFile[Content]) -> Content | None:
        """Return the content of a file; None if it is missing.

        Raises InvalidInput if it is damaged.
        """
        return self.read(file) if self.has(file) else None

    def _find_now(self, file: files.RunFile[Content]) -> Content | None:
        """Return as `find` what the file has now: another process may have written it."""
        return dataclasses.replace(self, kept=None).find(file)

    def write(self, file: files.RunFile[Content], content: Content) -> None:
        """Write a file."""
        values = to_json(file.kind, content)
        self.write_json(file, written_by.stamp(values) if file == files.ABOUT else values)
        self.read_cached(file, lambda: content)

    def take_next_number(self, above: int = 0) -> None:
        """Give a run that starts over a new number, larger than `above`."""
        self._number(self.about(), above)

    def _number(self, about: About, above: int = 0, *, is_new: bool = False) -> bool:
        """Write run.json with the next number; False if it is new, and the folder has a run."""
        if not self.only_read:
            run = f"{self.place.parent.name}/{self.place.name}"
            content = json_text(
                written_by.stamp({"run": run, "at": iso_utc(), "nonce": uuid4().hex})
            ).encode()
            number = run_numbers.take_number(self.store.sequence, content, above)
            about = replace(about, sequence=number)
        if is_new:
            text = json_text(written_by.stamp(to_json(files.ABOUT.kind, about)))
            return (self.place / files.ABOUT).create(text.encode("utf-8", "backslashreplace"))
        self.write(files.ABOUT, about)
        return True

    def find_original(self) -> str | None:
        """Return the run, as CLUSTER/RUN, whose folder this one in a run store is a copy of."""
        try:
            about = self.about()
        except InvalidInput:  # the code that needs the file reports the damage
            return None
        own, of = (safe_name(about.cluster), about.run), self.place.parent
        is_copy = of.parent.name == "runs" and own != (of.name, self.place.name)
        return "/".join(own) if is_copy else None

    def refuse_copy(self) -> None:
        """Raise InvalidInput if it is a copy of another run's folder, in a run store."""
        if original := self.find_original():
            raise InvalidInput(
                f"{self.place} is a copy of the folder of run {original}",
                f"Pass that run. To read the copy, move it out of the run store: {self.place}",
            )

    def about(self) -> About:
        """Return run.json."""
        return self.read(files.ABOUT)

    def change_about(self, **changes: Any) -> None:
        """Change fields of run.json."""
        self.write(files.ABOUT, replace(self.about(), **changes))

    def policy(self) -> Policy:
        """Return the policy that check recorded."""
        return self.read(files.POLICY)

    def leave_policy(self, policy: Policy) -> None:
        """Write policy.json, and its cluster id to run.json.

        Raises InvalidInput if the run is that of another cluster id.
        """
        about, cluster_id = self.about(), policy.cluster_id
        if about.cluster_id not in {None, cluster_id}:
            raise InvalidInput(
                f"run {about.run} of {about.cluster} is of cluster {about.cluster_id}, and "
                f"cluster.yaml has {cluster_id}",
                "If two clusters have this name in one run store, rename the folder of one, or use "
                "two run stores. If the cluster was rebuilt, start a new run.",
            )
        self.write(files.ABOUT, replace(about, cluster_id=cluster_id))
        self.write(files.POLICY, policy)

    def leave_name(self) -> None:
        """Record in the store that the cluster has this name, once the run has reached it.

        Until then cluster_id may be mistyped, and would make the name that of two clusters.
        """
        if not self.only_read:
            about = self.about()
            newest = self.store.newest_run(about.cluster, self.policy().cluster_id, about.dag_id)
            if not newest.exists():
                newest.create(b"\n")

    def record(self) -> Alter | LedgerEdit | None:
        """Return what a command without a plan of Git recorded; None for any other run."""
        for file in filter(self.has, files.RECORDS):
            found: Alter | LedgerEdit = self.read(file)
            return found
        return None

    def findings(self) -> tuple[Finding, ...]:
        """Return every finding, silenced or not, that plan recorded."""
        found = self.read(files.FINDINGS).findings
        if unknown := [finding.code for finding in found if finding.code not in CODES]:
            raise self.explain_damage(
                files.FINDINGS, ValueError(f"{unknown[0]!r} is not a finding code")
            )
        return found

    def plan(self) -> Plan:
        """Return the plan of an earlier stage; its file also has the digest that it had then."""
        return self.read_cached("plan", self._read_plan)

    def _read_plan(self) -> Plan:
        stored, rows = self.read(files.PLAN), self.differences()
        ranked, overridden = tuple(sorted(rows, key=rank_by_risk)), self.count_overridden(rows)
        return Plan(**stored.head, differences=ranked, overridden=overridden)

    def leave_plan(self, plan: Plan) -> None:
        """Write plan.json; the rows of the plan are DIFFERENCES."""
        self.write(files.PLAN, StoredPlan(**plan.head, digest=plan.digest, rows=self.digest_rows()))
        self.read_cached("plan", lambda: plan)

    def digest_rows(self) -> str:
        """Return the SHA-256 of the bytes of DIFFERENCES. Raises InvalidInput if it is missing."""
        return sha256(self._read(DIFFERENCES.file)).hexdigest()

    def outcomes(self, file: files.RunFile[Outcomes]) -> tuple[Outcome, ...]:
        """Return the outcomes of an earlier stage; empty if it did not run."""
        found = self.find(file)
        return found.outcomes if found else ()

    def leave_outcomes(self, file: files.RunFile[Outcomes], outcomes: tuple[Outcome, ...]) -> None:
        """Write outcomes; no two attempts write the same bytes."""
        self.write(file, Outcomes.of(outcomes))

    def settlement(self) -> Settlement | None:
        """Return what a later run found of the writes without a response; None if none looked."""
        return self._find_now(files.SETTLEMENT)

    def decisions(self) -> tuple[Decision, ...]:
        """Return the decisions about this run's plan, in order."""
        found = self._find_now(files.APPROVAL)
        return found.decisions if found else ()

    def differences(self) -> tuple[Difference, ...]:
        """Return the rows of DIFFERENCES."""
        return self.read_cached(DIFFERENCES.file, self._differences)

    def _differences(self) -> tuple[Difference, ...]:
        table = self.read_table(DIFFERENCES)
        columns = {name: parquet.to_values(table[name]) for name in table.column_names}
        try:
            columns["kind"] = [_KINDS.get(column) or Kind(column) for column in columns["kind"]]
            columns["action"] = [
                _ACTIONS.get(column) or Action(column) for column in columns["action"]
            ]
            return tuple(map(Difference._make, zip(*columns.values(), strict=True)))
        except ValueError as error:
            raise InvalidInput(f"{self.place / DIFFERENCES.file} is damaged: {error}") from error

    def overrides(self, side: Side = Side.UNMANAGED) -> tuple[OverrideRow, ...]:
        """Return the rows of OVERRIDES of a side.

        They are empty for a run without a diff of Git and the cluster.
        """
        if not self.has(OVERRIDES.file):
            return ()
        rows = self.read_cached(OVERRIDES.file, lambda: tuple(self.read_rows(OVERRIDES)))
        return tuple(row for row in rows if row.side == side)

    def count_overridden(self, differences: Iterable[Difference]) -> int:
        """Return of how many rows, stored as in Git, overriding or leaving rows take clients."""
        taken = {row.declared_id for row in (*self.overrides(), *self.overrides(Side.LEAVING))}
        differ = (row.id for row in differences if row.kind is not Kind.IN_SYNC)
        return len(taken.difference(differ)) if taken else 0

    def batches(self) -> dict[int, tuple[Difference, ...]]:
        """Return the rows of each request by its number."""
        return self.read_cached("batches", lambda: group_by_batch(self.differences()))

    @contextmanager
    def stage(self, stage: str) -> Iterator[None]:
        """Record how a stage ended and how long it took, whatever it raises except Claimed.

        Until then, apply, which writes to the cluster, is NOT_ENDED.
        """
        self.require_claim()
        self.written.clear()
        began = monotonic()
        if stage == "apply":
            self.keep_end(StageResult(stage, StageStatus.NOT_ENDED))
        try:
            with timed(_log, logging.INFO, f"stage {stage}"):
                yield
            self.require_written()
        except Claimed:  # the stage now belongs to the process that took over
            raise
        except BaseException as error:
            status, message = explain_failure(error)
            with suppress(InvalidInput):  # a failing store must not hide this error
                self.keep_end(StageResult(stage, status, round(monotonic() - began, 3), message))
            raise
        self.keep_end(StageResult(stage, StageStatus.DONE, round(monotonic() - began, 3)))
        pa.default_memory_pool().release_unused()  # malloc keeps what a stage has freed

    def keep_end(self, result: StageResult) -> None:
        """Record how a stage ended."""
        self.write(files.STAGE.of(result.stage), StageEnd(**asdict(result), at=iso_utc()))

    def stage_result(self, stage: str) -> StageResult:
        """Return how a stage of this run ended; NOT_RUN if it did not begin."""
        found = self._find_now(files.STAGE.of(stage))
        return found.result if found else StageResult(stage, StageStatus.NOT_RUN)
