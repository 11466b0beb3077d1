"""Desired states of any size, and the snapshots that go with them."""

from pathlib import Path

POLICY = """\
cluster_id: {cluster_id}
connection: bench
guards: {{removals: 1000000, removals_share: 100, cut_share: 100}}
"""


def write_cluster(folder: Path, cluster_id: str) -> None:
    """A cluster's folder without quotas."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.yaml").write_text(POLICY.format(cluster_id=cluster_id))


def write_quotas(folder: Path, entities: int, *, moved: int = 0, step: int = 0) -> Path:
    """A file of so many entities, two keys each; every entity in `moved` adds `step` bytes/s."""
    lines = ["owner: bench", "quotas:"]
    for number in range(entities // 2):
        rate = 1_048_576 + number + (step if moved and number % moved == 0 else 0)
        lines += (
            f"  - user: user-{number:06d}",
            f"    limits: {{producer_byte_rate: {rate}, consumer_byte_rate: 2097152}}",
            f"  - user: user-{number:06d}",
            f"    client-id: app-{number % 100}",
            f"    limits: {{producer_byte_rate: {rate}, request_percentage: 50}}",
        )
    path = folder / "bench.yaml"
    path.write_text("\n".join(lines) + "\n")
    return path
