"""apply on a real broker: which rows are left alone, settled, and sent."""

import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.connection import Connection
from quota_ops.kafka.messages import CLUSTER_AUTHORIZATION_FAILED, build_alter_request
from quota_ops.kafka.preflight import preflight
from quota_ops.model.errors import NoResponse
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.rows import DesiredRow
from quota_ops.model.quotas.tables import DESIRED
from quota_ops.model.runs.outcome import EntityResponse, Outcome, Status, build_outcomes
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from quota_ops.stages import apply
from quota_ops.stages.apply import requests
from quota_ops.store.run.attempt import Attempt
from quota_ops.store.run.files import APPLIED, VALIDATED
from tests.broker.lossy import IN_FLIGHT, Lossy
from tests.broker.stage_runs import KEY, TEN, After, outcomes
from tests.lab import Lab, error_of
from tests.places import on_disk
from tests.writing import State

OTHER = "consumer_byte_rate"


@pytest.mark.each_store
def test_run_twice(lab: Lab) -> None:
    """The second run has nothing to write, and leaves cluster and ledger unchanged."""
    state: State = {
        "user=alice": {KEY: 1.5e6, "request_percentage": 12.5, "controller_mutation_rate": 0.1},
        "user=<default>": {KEY: 2.0**63, OTHER: 2.0**53},
        'client-id=<default>,user="a\\nb, \\"c\\"=\\u001b"': {KEY: 1.0},
        "client-id=app": {"request_percentage": 1e-7},
        "ip=10.0.0.1": {"connection_creation_rate": 2_147_483_647.0},
    }
    lab.desire(state)
    first = lab.run("reconcile")
    written = lab.records.ledger.list()

    second = lab.run("reconcile")

    assert lab.stored() == lab.known() == state
    assert lab.known(INTENDED) == {}
    assert set(outcomes(first).values()) == {Status.ACCEPTED}
    assert outcomes(second) == {}
    assert lab.records.ledger.list() == written


@pytest.mark.usefixtures("small_batches")
def test_the_same_run_twice(lab: Lab) -> None:
    """A run that is resumed after its end sends nothing, and still reports its earlier writes."""
    lab.desire(TEN)
    run = lab.planned()
    run_stages(run, RESUMED)
    before = outcomes(run.folder)

    run_stages(run, RESUMED)

    assert outcomes(run.folder) == before == dict.fromkeys(TEN, Status.ACCEPTED)
    assert lab.stored() == lab.known() == TEN


@pytest.mark.each_store
def test_a_stale_row_is_left_alone(lab: Lab) -> None:
    """A row that changed after the plan is reported with its entity; the others are written."""
    lab.desire(TEN)
    run = lab.planned()
    lab.put({"user=u3": {KEY: 7.0}, "user=u4": TEN["user=u4"]})

    error = error_of(run, RESUMED)

    assert str(error) == (
        "1 of 10 entities did not end as planned:\n"
        "  user=u3  stale: producer_byte_rate is now 7 B/s\n"
        "  The others were written. This run leaves stale rows alone; a new one is needed. "
        "Plan again to see their status: quota-ops plan demo"
    )
    assert error.exit_code == 1
    rest = {entity: limits for entity, limits in TEN.items() if entity != "user=u3"}
    assert lab.stored() == rest | {"user=u3": {KEY: 7.0}}
    assert outcomes(run.folder) == {
        **dict.fromkeys(TEN, Status.ACCEPTED),
        "user=u3": Status.STALE,
        "user=u4": Status.ALREADY,
    }
    assert lab.known() == rest
    assert lab.known(INTENDED) == {}


@pytest.mark.usefixtures("small_batches")
def test_after_a_pause_the_cluster_is_looked_at_again(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change between two batches that are far apart is noticed before it is overwritten."""
    monkeypatch.setattr(apply, "compute_max_age", lambda _took: 0.0)
    lab.desire(TEN)
    second = sorted(TEN)[2]
    told = After(1, partial(lab.put, {second: {KEY: 7.0}}))

    error = error_of(lab.planned(progress=told), RESUMED)

    assert f"{second}  stale: producer_byte_rate is now 7 B/s" in error.message
    assert told.batches == [2] * 5
    assert lab.stored() == TEN | {second: {KEY: 7.0}}
    assert lab.known(INTENDED) == {}


def test_a_value_that_somebody_sets_while_a_response_is_awaited(lab: Lab) -> None:
    """A request without a response is sent again only for what is as the run found it."""
    state = TEN | {"user=u3": {KEY: 103.0, OTHER: 5.0}}
    lab.desire(state)
    found: dict[str, dict[str, float | None]] = {"user=u3": {KEY: 7.0, OTHER: 5.0}}

    def lose() -> Iterator[str]:
        lab.put(found)
        yield IN_FLIGHT

    run = lab.planned(connect=lambda: Lossy(lab.cluster, lose()))

    error = error_of(run, RESUMED)

    assert error.message == (
        "1 of 10 entities did not end as planned:\n"
        "  user=u3  unknown: no response arrived, and producer_byte_rate is now 7 B/s: it was not "
        "sent again"
    )
    assert lab.stored() == state | found
    assert outcomes(run.folder) == {
        **dict.fromkeys(TEN, Status.ACCEPTED),
        "user=u3": Status.UNKNOWN,
    }
    assert {row for outcome in run.folder.outcomes(APPLIED) for row in outcome.rows} == {
        (entity, key) for entity, limits in state.items() for key in limits
    }


@pytest.mark.parametrize("kind", ["plan", "alter"])
def test_a_response_that_is_awaited_for_more_than_a_minute(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The request is sent again: the cluster was described since, and nothing else has changed."""
    read_clock, apply_once, waits = time.clock_gettime, Cluster.apply, iter([61.0])

    def lose(cluster: Cluster, alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
        if seconds := next(waits, None):
            monkeypatch.setattr(time, "clock_gettime", lambda clock: read_clock(clock) + seconds)
            raise NoResponse("no response arrived")
        return apply_once(cluster, alterations)

    monkeypatch.setattr(Cluster, "apply", lose)
    lab.desire(TEN)

    if kind == "plan":
        run_stages(lab.planned(), RESUMED)
        assert lab.stored() == TEN
    else:
        assert lab.call("alter", "demo", "--names", "user=u3", "--add", f"{KEY}=7").returncode == 0
        assert lab.stored() == {"user=u3": {KEY: 7.0}}


@pytest.mark.parametrize("kind", ["plan", "alter"])
def test_a_process_that_was_paused_after_it_described(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It sends nothing from a description that is too old: somebody has changed a value since."""
    monkeypatch.setattr(requests, "OLDEST", 0.3)
    lab.desire({"user=u3": TEN["user=u3"]})
    run = lab.planned()

    def pause(attempt: Attempt, number: int, batch: Iterable[Outcome]) -> None:
        note(attempt, number, batch)
        lab.put({"user=u3": {KEY: 7.0}})
        time.sleep(0.6)

    note = Attempt.note
    monkeypatch.setattr(Attempt, "note", pause)
    if kind == "plan":
        error = error_of(run, RESUMED)
        assert " s ago: this process was paused" in error.message
        assert outcomes(run.folder) == {"user=u3": Status.NOT_SENT}
    else:
        ended = lab.call("alter", "demo", "--names", "user=u3", "--add", f"{KEY}=200")
        assert (ended.returncode, "this process was paused" in ended.stderr) == (1, True)

    assert lab.stored() == {"user=u3": {KEY: 7.0}}
    assert lab.known(INTENDED) == {}


class Gateway(Cluster):
    """A broker behind a proxy that denies one entity, and forwards the writes of the others."""

    def _alter(
        self, alterations: Sequence[Alteration], send: Callable[[Any], Any], *, validate_only: bool
    ) -> tuple[EntityResponse, ...]:
        def deny(request: Any) -> Any:
            if validate_only:
                return send(request)
            forwarded = [one for one in alterations if one.entity.text != "user=u3"]
            response = send(build_alter_request(forwarded, validate_only=False))
            denied = deepcopy(response.entries[0])
            denied.entity[0].entity_name, denied.error_code = "u3", CLUSTER_AUTHORIZATION_FAILED
            response.entries.append(denied)
            return response

        return super()._alter(alterations, deny, validate_only=validate_only)


def test_an_entity_that_a_proxy_denies(lab: Lab) -> None:
    """The others count as written: that error of one entity is none of the whole request."""
    lab.desire(TEN)
    connection = Connection.parse(f"bootstrap.servers={lab.bootstrap}", name="demo", source="")
    with closing(Gateway(connection, preflight(connection, None), 30.0)) as gateway:
        run = lab.planned(connect=lambda: gateway)
        error = error_of(run, RESUMED)

    assert "user=u3  refused: CLUSTER_AUTHORIZATION_FAILED" in error.message
    assert outcomes(run.folder) == dict.fromkeys(TEN, Status.ACCEPTED) | {"user=u3": Status.REFUSED}
    assert lab.stored() == lab.known() == {one: TEN[one] for one in TEN if one != "user=u3"}


def test_an_entity_that_the_broker_refuses_at_last(lab: Lab) -> None:
    """Responses are matched by entity: one is rejected at apply, the others are kept."""
    lab.desire(TEN)
    run = lab.start(approve=None)
    run_stages(run, ("check",))
    cluster_id = lab.cluster.cluster_id
    wrong = DesiredRow(
        cluster_id, "ip=example.invalid", "connection_creation_rate", 5.0, None, None, "x.yaml", 99
    )
    good = [
        DesiredRow(cluster_id, entity, KEY, value, "team", None, "team.yaml", 3)
        for entity, limits in TEN.items()
        for value in limits.values()
        if value
    ]
    run.folder.write_table(DESIRED, [wrong, *good])
    run_stages(run, ("describe", "diff", "plan"))
    refused = error_of(run, ("validate",))
    accepted = [
        outcome
        for number, rows in run.folder.batches().items()
        for outcome in build_outcomes(number, rows, Status.ACCEPTED, None)
    ]
    run.folder.leave_outcomes(VALIDATED, tuple(accepted))

    error = error_of(run, RESUMED)

    words = "INVALID_REQUEST: example.invalid is not a valid IP or resolvable host."
    assert f"x.yaml:99  ip=example.invalid  {words}" in refused.message
    assert error.message.startswith(
        f"1 of 11 entities did not end as planned:\n  ip=example.invalid  refused: {words}"
    )
    assert error.exit_code == 1
    assert lab.stored() == lab.known() == TEN
    assert lab.known(INTENDED) == {}


def test_nothing_is_written_when_one_entity_is_refused(lab: Lab) -> None:
    """A rejection by validate stops the run before its first write, for all entities."""
    lab.desire(TEN)
    run = lab.start()
    run_stages(run, ("check",))
    row = DesiredRow(lab.cluster.cluster_id, "user=u1", "nope", 5.0, None, None, "team.yaml", 4)
    run.folder.write_table(DESIRED, [row])

    error = error_of(run, ("describe", "diff", "plan", "validate", "apply", "verify", "report"))

    assert str(error) == (
        "the broker rejects 1 of 1 entity:\n"
        "  team.yaml:4  user=u1  INVALID_REQUEST: Invalid configuration key nope\n"
        "  Nothing was written. Fix the lines above."
    )
    assert lab.stored() == {}
    assert not lab.records.ledger.exists()
    assert (run.folder.place / "report.html").exists()


def test_what_is_not_a_number_is_replaced_and_cleared(lab: Lab) -> None:
    """NaN and Infinity, which this broker stores and later ones reject, are values like others."""
    odd: dict[str, dict[str, float | None]] = {
        "user=a": {"request_percentage": math.nan},
        "user=b": {"request_percentage": math.inf},
    }
    lab.put(odd | {"user=c": {KEY: math.nan}})
    lab.note({"user=c": {KEY: 5.0}})
    lab.desire({entity: {"request_percentage": 50.0} for entity in odd})
    guards = lab.refused("plan", allow={})[1].message

    lab.run("reconcile")

    assert "cut: user=a request_percentage and 1 more would fall by more than 50 %" in guards
    assert lab.stored() == lab.known() == {entity: {"request_percentage": 50.0} for entity in odd}


@pytest.mark.local_store
@pytest.mark.usefixtures("small_batches")
def test_the_folder_of_a_run_goes_away_while_it_writes(lab: Lab) -> None:
    """The error lists what was sent until then; the next run counts it as managed."""
    lab.desire(TEN)
    run = lab.start()
    gone = partial(shutil.rmtree, on_disk(run.folder))
    run = replace(run, progress=After(1, gone))

    error = error_of(run, CHAINS["reconcile"])

    assert error.exit_code == 1
    assert error.message == (
        f"the folder of this run, {run.folder.place}, was moved or deleted while it wrote. "
        "Sent before that: 2 keys accepted"
    )
    assert len(lab.stored()) == 2
    lab.run("reconcile")
    assert lab.known() == TEN
