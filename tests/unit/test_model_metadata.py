"""How current the brokers' metadata is, stored as JSON and read back unchanged."""

from quota_ops.model.clusters.cluster_facts import Absent, Metadata

TOLD = Metadata(
    led=True,
    seconds=((1, 0.0), (2, 0.4), (3, 12.5)),
    observers=(2, 3),
    answered=(1, 2),
    disagree=((3, 2),),
    absent=(Absent(3, "kafka-3:9094", "is fenced"), Absent(4, None, "is missing", "scaled down")),
    complete=True,
    needless=((1, "is alive"),),
)


def test_an_image_is_old_when_its_broker_does_not_follow() -> None:
    """Half a second of lag is normal for a broker; many seconds are not."""
    assert TOLD.old == {3: 12.5}
    assert TOLD.stalled == (3,)


def test_a_retired_broker_is_not_missed() -> None:
    """A broker under `retired_brokers` is absent, and no run waits for it."""
    assert [broker.id for broker in TOLD.missed] == [3]
