"""The small values of the model: differences, alterations, read-back, problems and errors."""

import inspect
from importlib.util import find_spec
from math import nan
from typing import Any

import pytest

from quota_ops.model import errors
from quota_ops.model.errors import InvalidDesiredState, QuotaOpsError, Refused
from quota_ops.model.finding import Problem
from quota_ops.model.quotas.alteration import Alteration, group_alterations
from quota_ops.model.quotas.difference import Action, Difference, Kind, group_by_batch
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.rows import (
    ActualRow,
    DesiredRow,
    Key,
    LedgerRow,
    OverrideRow,
    Side,
    find_unequal,
)
from quota_ops.model.quotas.tables import (
    ACTUAL,
    CLUSTERS,
    DESIRED,
    DIFFERENCES,
    HOLDS,
    LEDGER,
    TEXT,
    Column,
)
from quota_ops.model.runs.adoption import Adoption
from quota_ops.model.runs.progress import SILENT
from quota_ops.model.runs.rollback import Undone
from quota_ops.model.runs.stages import STAGES
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.precedence.resolution import LIMITS
from tests.unit.report_sample import PLANNED

ROW = Difference(
    "id", "user=a", "k", Kind.PENDING, Action.SET, 1.0, 2.0, None, None, None, *(None,) * 7
)


@pytest.mark.parametrize(
    ("action", "target"),
    [(Action.SET, 2.0), (Action.CLEAR, None), (Action.FORGET, None), (Action.REPORT, None)],
)
def test_only_a_set_has_a_target(action: Action, target: float | None) -> None:
    """Only a row that is set has a desired value."""
    assert ROW._replace(action=action).target == target


def test_an_override_has_two_rows() -> None:
    """It names the unmanaged row, and the declared one of which that takes clients."""
    pair = "client-id=<default>,user=a"
    row = OverrideRow(
        "id", pair, "k", 1.0, None, "user=a", 2.0, "team", "team.yaml", 4, Side.LEAVING
    )

    assert (row.id, row.declared_id) == (Key(pair, "k"), Key("user=a", "k"))


def test_rows_by_the_request_that_writes_them() -> None:
    """Requests are in ascending order; a row that is not written is in none."""
    second, first = ROW._replace(batch=2), ROW._replace(batch=1)

    assert list(group_by_batch([second, ROW, first]).items()) == [(1, (first,)), (2, (second,))]


def test_a_row_of_git_keeps_the_commit_that_declared_its_value() -> None:
    """A declared row has the commit that the ledger knows, every other write the applied one."""
    row = ROW._replace(after=1.0, commit="first")
    assert row.find_commit("newest") == "first"
    assert row._replace(commit=None).find_commit("newest") == "newest"
    assert row._replace(after=None).find_commit("newest") == "newest"


@pytest.mark.parametrize("kind", Kind)
def test_drift_is_what_somebody_else_moved(kind: Kind) -> None:
    """A pending row is not drift, nor is an unmanaged one."""
    assert ROW._replace(kind=kind).is_drift == (
        kind in {"drifted", "conflict", "changed_since", "gone"}
    )


@pytest.mark.parametrize(
    ("file", "line", "source"),
    [(None, None, None), ("a.yaml", None, "a.yaml"), ("a.yaml", 8, "a.yaml:8")],
)
def test_the_place_that_asks(file: str | None, line: int | None, source: str | None) -> None:
    """A row has its file and line, as far as they are known."""
    assert ROW._replace(file=file, line=line).source == source


def test_rows_of_a_batch_become_one_alteration_per_entity() -> None:
    """Adjacent rows of one entity are sent together, a clear as None."""
    rows = [
        ROW._replace(entity="client-id=<default>", key="a", action=Action.SET, after=1.0),
        ROW._replace(entity="user=a", key="a", action=Action.CLEAR, before=3.0),
        ROW._replace(entity="user=a", key="b", action=Action.SET, after=2.0),
    ]

    assert group_alterations(rows) == (
        Alteration(Entity.of({"client-id": None}), (("a", 1.0),)),
        Alteration(Entity.of({"user": "a"}), (("a", None), ("b", 2.0))),
    )
    assert group_alterations([]) == ()


TABLES = """
desired: cluster entity key value:double owner? reason? file line:int derivation? until?
 returns_to:double? whole:double? whole_after:double? topics? brokers:int?
actual: cluster entity key value:double in_scope:boolean hands_off?
ledger: cluster entity key value:double? state owner? file? commit? run at sequence:int?
 returns_to:double? brokers:int?
clusters: cluster drift clear_unmanaged:boolean invalid_files?
holds: cluster entity held
differences: cluster entity key kind action before:double? after:double? verified:double? owner?
 reason? file? line:int? commit? run? since? hands_off? held? memory? derivation?
 until? returns_to:double? is_return:boolean? brokers:int? batch:int?
limits: key rank:int user_name? client_id? entity value:double
"""


def test_columns_of_stored_tables() -> None:
    """Files of earlier versions have these columns: text without a type, `?` null, `+` added."""
    tables = (DESIRED, ACTUAL, LEDGER, CLUSTERS, HOLDS, DIFFERENCES)
    lines = [
        f"{table.name}: {' '.join(map(_format_column, table.columns))}"
        for table in (*tables, LIMITS)
    ]

    assert lines == TABLES.strip().replace("\n ", " ").split("\n")
    assert LEDGER.file == "ledger.parquet"


def _format_column(column: Column) -> str:
    kind = "" if column.type == TEXT else f":{column.type}"
    return f"{column.name}{kind}{'?' * column.nullable}"


def test_unequal_rows() -> None:
    """A broker lags in every row that it stores otherwise, or stores and should not."""
    targets = {
        Key("a", "k"): 1.0,
        Key("b", "k"): 2.0,
        Key("c", "k"): None,
        Key("d", "k"): None,
        Key("e", "k"): 5.0,
        Key("f", "k"): nan,
    }
    stored = {Key("a", "k"): 1.0, Key("b", "k"): 3.0, Key("c", "k"): 4.0, Key("x", "k"): 9.0}
    stored[Key("f", "k")] = float("nan")  # stored before Kafka 4.4, and equal to itself here

    assert find_unequal(targets, stored) == (Key("b", "k"), Key("c", "k"), Key("e", "k"))
    assert find_unequal({Key("a", "k"): 1.0}, stored) == ()


@pytest.mark.parametrize(("lag", "agrees"), [(0, True), (3, False), (None, False)])
def test_a_broker_agrees_when_it_answered_and_lags_in_nothing(
    lag: int | None, *, agrees: bool
) -> None:
    """A broker that did not respond does not agree."""
    assert BrokerResult(1, "127.0.0.1:9092", 2, lag).agrees is agrees


def test_nobody_is_told() -> None:
    """SILENT accepts every report and does nothing."""
    assert (SILENT.report_batch(1, 2, ()), SILENT.report_brokers((), 1.0)) == (None, None)  # type: ignore[func-returns-value]


def test_the_eight_stages_are_modules() -> None:
    """The names of the stages are the names of the modules that run them."""
    assert len(set(STAGES)) == 8
    assert all(find_spec(f"quota_ops.stages.{stage}") for stage in STAGES)


def test_every_error_has_its_exit_code() -> None:
    """The exit code of a command depends on the class of its error."""
    classes = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    codes = {
        client_class.__name__: client_class.exit_code
        for client_class in classes
        if issubclass(client_class, QuotaOpsError)
    }

    assert codes == {
        "QuotaOpsError": 1,
        "Refused": 1,
        "Claimed": 1,
        "GuardsRefused": 1,
        "InvalidInput": 2,
        "InvalidDesiredState": 2,
        "Denied": 2,
        "GitFailed": 2,
        "MissingTool": 2,
        "ClusterTrouble": 3,
        "Unreachable": 3,
        "LoginFailed": 3,
        "NotAuthorized": 3,
        "NoResponse": 3,
        "WrongCluster": 3,
        "Unexpected": 5,
        "CannotJudge": 6,
        "UseUnknown": 6,
    }


def test_an_error_says_its_remedy_on_a_line_of_its_own() -> None:
    """First what is wrong, then what to do; without a remedy only the first."""
    assert str(Refused("no", "Do this.")) == "no\n  Do this."
    assert str(Refused("no")) == "no"


def test_problems_are_told_in_the_order_of_the_files() -> None:
    """Problems are ordered by file, line and column, each with its place."""
    problems = [
        Problem("b.yaml", 1, 1, "Third."),
        Problem("a.yaml", 9, 2, "Second.", "Fix it."),
        Problem("a.yaml", 9, 1, "First."),
    ]

    error = InvalidDesiredState(problems, files=2, quotas=7)

    assert (error.files, error.quotas, error.problems) == (2, 7, tuple(problems[::-1]))
    assert str(error) == "a.yaml:9:1  First.\na.yaml:9:2  Second. Fix it.\nb.yaml:1:1  Third."
    cut = InvalidDesiredState(problems[:1], files=1, quotas=0, unlisted=1_200)
    assert str(cut) == "b.yaml:1:1  Third.\n1,200 more are not listed"


def test_a_report_has_the_commit_of_what_was_read() -> None:
    """The commit of a report is that of its files' provenance."""
    assert PLANNED.commit == PLANNED.provenance.commit == "a1b2c3d4e5f6"


@pytest.mark.parametrize(
    "row",
    [
        DesiredRow("id", "user=a", "k", 1.0, None, None, "a.yaml", 1),
        ActualRow("id", "user=a", "k", 1.0, True, None),
        LedgerRow("id", "user=a", "k", 1.0, "verified", None, None, None, "run", ""),
        ROW._replace(entity="user=a", key="k"),
        RowVerdict("user=a", "k", 1.0, Verdict.VERIFIED),
        Undone("user=a", "k", 1.0, 2.0, None, verified=True),
        Adoption("user=a", "k", 1.0, None, None),
    ],
    ids=lambda row: type(row).__name__,
)
def test_the_identity_of_a_row(row: Any) -> None:
    """Every row has the same identity: the text of its entity, and the quota key."""
    assert row.id == Key("user=a", "k")
