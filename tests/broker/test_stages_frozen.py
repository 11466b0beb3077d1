"""apply on a broker that falls silent: what is unknown is settled, or said, and never guessed."""

import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from quota_ops.ledger import INTENDED
from quota_ops.model.errors import Unreachable
from quota_ops.model.outcome import Status
from quota_ops.run_folder import APPLIED, PLAN
from quota_ops.sandbox.broker import RunningBroker
from quota_ops.stages import settle
from quota_ops.stages.chain import CHAINS, RESUMED, run_stages
from tests.broker.stage_runs import TEN, After, outcomes
from tests.lab import Lab, error_of, open_lab


class Freezer:
    """Lets a broker take a request and be silent."""

    def __init__(self, broker: RunningBroker) -> None:
        self._node = broker.nodes[0]
        self._timers: list[threading.Timer] = []

    def freeze(self, seconds: float) -> None:
        """Stop the process, and let it go on after some seconds."""
        self._node.send(signal.SIGSTOP)
        self._timers.append(threading.Timer(seconds, self.thaw))
        self._timers[-1].start()

    def thaw(self) -> None:
        """Let it go on."""
        self._node.send(signal.SIGCONT)

    def close(self) -> None:
        """Let it go on, now and for good."""
        for timer in self._timers:
            timer.cancel()
            timer.join()
        self.thaw()


@pytest.fixture(name="freezer")
def _freezer(broker: RunningBroker) -> Iterator[Freezer]:
    freezer = Freezer(broker)
    yield freezer
    freezer.close()


@pytest.fixture(name="impatient")
def _impatient(broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    with open_lab(broker, tmp_path, timeout=1.0) as lab:
        yield lab


@pytest.mark.usefixtures("small_batches")
def test_a_write_without_an_answer_is_settled(impatient: Lab, freezer: Freezer) -> None:
    """A broker that is silent for longer than a call waits is asked again, and the run goes on."""
    lab = impatient
    lab.desire(TEN)

    folder = lab.run("reconcile", progress=After(1, partial(freezer.freeze, 2.0)))

    assert lab.held() == lab.known() == TEN
    assert set(outcomes(folder).values()) == {Status.ACCEPTED}


@pytest.mark.usefixtures("small_batches")
def test_what_stays_unknown_is_said_and_found_out_by_the_next_run(
    impatient: Lab, freezer: Freezer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is sent after an unknown answer; the next run recognises what had arrived."""
    monkeypatch.setattr(settle, "PATIENCE", 0.5)
    monkeypatch.setattr("quota_ops.stages.verify.deadline", lambda _rows: 0.1)
    lab = impatient
    lab.desire(TEN)
    run = lab.start(progress=After(1, partial(freezer.freeze, 60.0)))

    error = error_of(run, (*CHAINS["plan"], "apply", "verify", "report"))

    first, second, rest = sorted(TEN)[:2], sorted(TEN)[2:4], sorted(TEN)[4:]
    assert error.exit_code == 1
    assert error.message.startswith("8 of 10 entities did not end as planned:\n")
    assert error.remedy == "Run again: what arrived is recognised, the rest is sent."
    assert outcomes(run.folder) == {
        **dict.fromkeys(first, Status.ACCEPTED),
        **dict.fromkeys(second, Status.UNKNOWN),
        **dict.fromkeys(rest, Status.NOT_SENT),
    }
    assert lab.known() == {}
    assert set(lab.known(INTENDED)) == {*first, *second}

    freezer.thaw()
    lab.wait_for({entity: TEN[entity] for entity in (*first, *second)})
    run_stages(lab.resume(run.folder, approve=run.folder.read_json(PLAN)["digest"]), RESUMED)
    assert outcomes(run.folder) == {
        **dict.fromkeys(TEN, Status.ACCEPTED),
        **dict.fromkeys(second, Status.ALREADY),
    }
    assert lab.held() == lab.known() == TEN
    assert lab.known(INTENDED) == {}


def test_a_broker_that_is_gone_before_the_first_write(impatient: Lab, freezer: Freezer) -> None:
    """What could surely not be sent is not noted as ours; the cluster's trouble is the error."""
    lab = impatient
    lab.desire(TEN)
    run = lab.planned()
    freezer.freeze(60.0)

    error = error_of(run, RESUMED)

    assert isinstance(error, Unreachable)
    assert not run.folder.has(APPLIED)
    freezer.thaw()
    assert lab.held() == {}
    assert not lab.ledger_folder.exists()
