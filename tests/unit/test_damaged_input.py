"""Whatever the bytes of a file are, the result is valid or an error of quota-ops, and complete."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quota_ops.desired.read import read_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.model.clusters.cluster_facts import Absent, BrokerFacts, ClusterFacts, Metadata
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.plans import ledger_edits
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.run import Outcomes, Verification
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.report.outline.layout import line, plain
from quota_ops.runs.chain import run_stages
from quota_ops.runs.run import Run
from quota_ops.stages.apply.approved_plan import load_plan
from quota_ops.stages.plan.origins import read_origins
from quota_ops.stages.report.forms import write_reports
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.files import (
    APPLIED,
    END,
    FACTS,
    METADATA,
    ORIGINS,
    PLAN,
    VALIDATED,
    VERIFICATION,
    RunFile,
)
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.listing import summarize_run
from tests.places import on_disk

CLUSTER_FILE = "cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\nprotect: [{user: boss}]\n"
QUOTAS_FILE = """\
owner: team
quotas:
  - user: alice
    limits: {producer_byte_rate: 15 MiB, request_percentage: 50}
    reason: because
  - ip: 10.0.0.1
    limits: {connection_creation_rate: 5}
"""
SNAPSHOT = [
    {"entity": {"user": "alice"}, "key": "producer_byte_rate", "value": 1.0},
    {"entity": {"user": "bob"}, "key": "request_percentage", "value": 2.0},
]
CONNECTION = """\
bootstrap.servers=kafka-1:9094
security.protocol=sasl_ssl
sasl.mechanism=SCRAM-SHA-256
sasl.username=svc
sasl.password=${env:HOME}
"""
EDITS = st.lists(
    st.tuples(st.integers(0, 4000), st.integers(0, 30), st.binary(max_size=6)),
    min_size=1,
    max_size=4,
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANY_JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
bounded = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
AS_A_BROKER_LEFT_THEM: dict[RunFile[Any], Any] = {
    VALIDATED: Outcomes.of((Outcome(1, "user=alice", ("producer_byte_rate",), Status.ACCEPTED),)),
    APPLIED: Outcomes.of((Outcome(1, "user=alice", ("producer_byte_rate",), Status.UNKNOWN),)),
    VERIFICATION: Verification(
        "",
        1,
        None,
        (BrokerResult(1, "kafka-1:9092", 2, 1),),
        (RowVerdict("user=alice", "producer_byte_rate", 1.0, Verdict.DIFFERS, ((1, None),)),),
    ),
    FACTS: ClusterFacts((BrokerFacts(1, "kafka-1:9092", "4.3", "a.B", 3, 8),), "User:a"),
    METADATA: Metadata(
        led=True,
        seconds=((1, 9.0),),
        observers=(1,),
        answered=(2,),
        disagree=((3, 4),),
        absent=(Absent(2, "b:1", "is fenced", "gone"),),
        complete=True,
    ),
}
Edits = list[tuple[int, int, bytes]]


def edited(content: bytes, edits: Edits) -> bytes:
    """Return bytes with parts of them replaced."""
    for start, length, piece in edits:
        at = start % (len(content) + 1)
        content = content[:at] + piece + content[at + length :]
    return content


def outcome(act: Callable[[], object]) -> QuotaOpsError | None:
    """Return the error of quota-ops, if any; any other exception fails the test."""
    try:
        act()
    except QuotaOpsError as error:
        return error
    return None


def is_harmless(text: str) -> bool:
    """Whether a text contains nothing that controls a terminal or hides a part of it."""
    return all(char.isprintable() or char == "\n" for char in text)


@pytest.fixture(name="run", scope="module")
def _run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the stages that need no cluster, as far as they succeed."""
    root = tmp_path_factory.mktemp("damaged")
    folder = root / "demo"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(CLUSTER_FILE)
    (folder / "team.yaml").write_text(QUOTAS_FILE)
    snapshot = root / "snapshot.jsonl"
    snapshot.write_text("".join(f"{json.dumps(row)}\n" for row in SNAPSHOT))
    store = RunStore(open_place(root / "store"))

    def connect() -> Any:
        raise AssertionError("there is no cluster")

    started = RunFolder.start(store.new_run("demo"), cluster="demo", commit=None)
    run = Run(started, folder, connect, actual=snapshot, allow={})
    outcome(lambda: run_stages(run, ("check", "describe", "diff", "plan")))
    for file, content in AS_A_BROKER_LEFT_THEM.items():
        started.write(file, content)
    return run


@bounded
@given(st.sampled_from(["cluster.yaml", "team.yaml"]), EDITS)
def test_yaml_of_any_bytes(run: Run, tmp_path: Path, name: str, edits: Edits) -> None:
    """The stage check reports the problem, whatever it reads."""
    folder = tmp_path / "demo"
    shutil.copytree(run.cluster_folder, folder, dirs_exist_ok=True)
    (folder / name).write_bytes(edited((folder / name).read_bytes(), edits))

    error = outcome(lambda: read_cluster(folder))

    assert is_harmless(plain(tuple(map(line, str(error).split("\n")))))


@bounded
@given(EDITS)
def test_a_connection_of_any_text(edits: Edits) -> None:
    """A connection parses, or the error names its line; no reference is resolved unless needed."""
    text = edited(CONNECTION.encode(), edits).decode("utf-8", "replace")

    error = outcome(lambda: Connection.parse(text, name="demo", source="demo.properties"))

    assert is_harmless(plain(tuple(map(line, str(error).split("\n")))))


@bounded
@given(st.data())
def test_an_artifact_of_any_bytes(run: Run, tmp_path: Path, data: st.DataObject) -> None:
    """The report is still written, harmless and complete; apply rejects it or accepts the plan."""
    folder = RunFolder(open_place(tmp_path / "run"))
    shutil.rmtree(on_disk(folder), ignore_errors=True)
    shutil.copytree(on_disk(run.folder), on_disk(folder))
    inputs = [one for one in sorted(on_disk(folder).iterdir()) if not one.name.startswith("report")]
    path = data.draw(st.sampled_from([one for one in inputs if one.name != "run.json"]))
    if path.suffix == ".json" and data.draw(st.booleans()):
        path.write_text(json.dumps(_with_any(data, json.loads(path.read_text("utf-8")))))
    else:
        path.write_bytes(edited(path.read_bytes(), data.draw(EDITS)))

    outcome(lambda: load_plan(folder, run.folder.read_json(PLAN)["digest"]))
    outcome(lambda: write_reports(folder))

    assert not list(on_disk(folder).glob("*.part"))
    for page in on_disk(folder).glob("report.*"):
        assert is_harmless(page.read_text("utf-8"))


def _with_any(data: st.DataObject, value: Any) -> Any:
    """Return a JSON value with a part of it replaced."""
    if value and isinstance(value, dict | list) and data.draw(st.integers(0, 3)):
        names = list(value) if isinstance(value, dict) else list(range(len(value)))
        name = data.draw(st.sampled_from(names))
        value[name] = _with_any(data, value[name])
        return value
    return data.draw(ANY_JSON)


@pytest.mark.parametrize("depth", [700, 3000])
def test_artifacts_that_are_nested_deep(run: Run, tmp_path: Path, depth: int) -> None:
    """Python's parser fails on them at some depth, and the run is still reported."""
    folder = RunFolder(open_place(tmp_path / "runs" / "demo" / "run"))
    shutil.copytree(on_disk(run.folder), on_disk(folder))
    nested = "[" * depth + "]" * depth
    plan = (on_disk(folder) / PLAN).read_text("utf-8")
    (on_disk(folder) / PLAN).write_text(plan.replace('"schedule":null', f'"schedule":{nested}'))
    for name in (FACTS, END.of(1), VALIDATED):
        (on_disk(folder) / name).write_text(nested)

    assert str(summarize_run(folder.place).trouble).startswith(f"{END.of(1)} is ")
    assert outcome(lambda: load_plan(folder, run.folder.read_json(PLAN)["digest"]))
    assert write_reports(folder).plan is None


@pytest.mark.parametrize("damage", [{"origin": {"words": 1}}, {"rows": [[{}, "k"]]}])
def test_an_origin_of_another_type(run: Run, tmp_path: Path, damage: dict[str, Any]) -> None:
    """Damaged origins are named, and the report is written without them."""
    folder = RunFolder(open_place(tmp_path / "run"))
    shutil.copytree(on_disk(run.folder), on_disk(folder))
    (on_disk(folder) / ORIGINS).write_text(
        json.dumps({"origins": [{"origin": {"words": "w"}, "rows": []} | damage]})
    )

    assert f"{on_disk(folder) / ORIGINS} does not have the format of " in str(
        outcome(lambda: read_origins(folder))
    )
    write_reports(folder)
    assert (on_disk(folder) / "report.html").exists()


@bounded
@given(EDITS)
def test_a_ledger_of_any_bytes(tmp_path: Path, edits: Edits) -> None:
    """A ledger is read or reported as damaged, and a damaged one is never extended."""
    folder = tmp_path / "ledger" / "c"
    shutil.rmtree(folder, ignore_errors=True)
    row = LedgerRow("c", "user=a", "k", 1.0, ledger_edits.VERIFIED, "t", "f", None, "run", "")
    records = RunStore(open_place(tmp_path)).of_cluster("c")
    ledger.change(records, lambda rows: rows.update({(*row.id, row.state): row}))
    (last,) = folder.iterdir()
    last.write_bytes(edited(last.read_bytes(), edits))

    error = outcome(lambda: ledger.change(records, lambda rows: rows.clear()))

    assert len(list(folder.iterdir())) == (1 if error else 2)
