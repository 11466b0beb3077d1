"""Four users with different permissions: the allowed calls of each, and its errors."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import NotAuthorized
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.outcome import EntityResponse
from quota_ops.report.text.report import as_text
from quota_ops.stages.report.run_report import read_report
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.folder import RunFolder
from tests.broker.rights import connection_of, properties_of, rights
from tests.broker.stage_runs import TEN
from tests.lab import open_lab
from tests.places import on_disk

ALICE = Entity.of({"user": "alice"})
CLEAR = (Alteration(ALICE, (("producer_byte_rate", None),)),)
ACCEPTED = (EntityResponse(ALICE, 0, "NONE", None),)
Login = Callable[[str], AbstractContextManager[Cluster]]


@pytest.fixture(name="login", scope="module")
def _login(secured_broker: RunningBroker) -> Iterator[Login]:
    """Open the cluster as a user: writer may alter, reader describe, none nothing."""
    with rights(secured_broker):
        yield lambda user: open_cluster(
            connection_of(secured_broker, user), cluster_id=secured_broker.config.cluster_id
        )


def refusal(servers: str, user: str, call: str, operation: str) -> str:
    """Return the error for a user without an operation."""
    return (
        f"connection demo: User:{user} is not authorized to {call} client quotas: it is missing "
        f"{operation} on the resource Cluster. Nothing was changed.\n"
        "  An administrator grants it with:\n"
        f"    kafka-acls.sh --bootstrap-server {servers} --command-config ADMIN.properties "
        f"--add --allow-principal User:{user} --operation {operation} --cluster"
    )


@pytest.mark.parametrize("user", ["admin", "writer"])
def test_who_may_alter_may_do_everything(user: str, login: Login) -> None:
    """AlterConfigs on the cluster is enough for all three calls."""
    with login(user) as cluster:
        assert cluster.describe() == ()
        assert cluster.describe(1) == ()
        assert cluster.validate(CLEAR) == ACCEPTED
        assert cluster.apply(CLEAR) == ACCEPTED


def test_who_may_describe_may_not_alter(login: Login, secured_broker: RunningBroker) -> None:
    """With DescribeConfigs alone a describe succeeds; validate needs what apply needs."""
    words = refusal(secured_broker.bootstrap("SASL"), "reader", "alter", "AlterConfigs")
    with login("reader") as cluster:
        assert cluster.describe() == ()
        for alter in (cluster.validate, cluster.apply):
            with pytest.raises(NotAuthorized) as error:
                alter(CLEAR)
            assert str(error.value) == words


def test_who_may_nothing_is_told_what_is_missing(
    login: Login, secured_broker: RunningBroker
) -> None:
    """Without a permission the login succeeds, and each call names the missing operation."""
    servers = secured_broker.bootstrap("SASL")
    with login("none") as cluster:
        for number in (None, 1):
            with pytest.raises(NotAuthorized) as error:
                cluster.describe(number)
            assert str(error.value) == refusal(servers, "none", "describe", "DescribeConfigs")
        with pytest.raises(NotAuthorized) as error:
            cluster.validate(CLEAR)
        assert str(error.value) == refusal(servers, "none", "alter", "AlterConfigs")


@pytest.mark.usefixtures("login")
def test_a_pull_request_by_who_may_describe(secured_broker: RunningBroker, tmp_path: Path) -> None:
    """The comment of a job with DescribeConfigs alone has every change, marked as not validated."""
    with open_lab(secured_broker, tmp_path) as lab:
        lab.connection_file.write_text(properties_of(secured_broker, "reader"))
        lab.desire(TEN)

        ran = lab.call("report", "demo")

        (run,) = on_disk(lab.store.root / "runs" / "demo").iterdir()
    unasked = (
        "the plan was not validated: Kafka requires the permission to alter even for validate-only."
    )
    refused = (
        "connection demo: User:reader is not authorized to alter client quotas: it is missing "
        "AlterConfigs on the resource Cluster. Nothing was changed."
    )
    assert ran.returncode == 3
    assert ran.stderr.startswith(f"{unasked}\n{refused}\n  An administrator grants it with:\n")
    text = as_text(read_report(RunFolder(open_place(run))))
    assert text.startswith("10 changes to make on demo")
    assert unasked in text
