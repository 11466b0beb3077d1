"""Desired states of any size, and the snapshots that match them."""

import json
from pathlib import Path

POLICY = """\
cluster_id: {cluster_id}
connection: bench
guards: {{removals: 1000000, removals_share: 100, cut_share: 100}}
"""


def write_cluster(folder: Path, cluster_id: str) -> None:
    """Write a cluster folder without quotas."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cluster.yaml").write_text(POLICY.format(cluster_id=cluster_id))


def write_quotas(
    folder: Path, entities: int, *, moved: int = 0, step: int = 0, files: int = 1
) -> None:
    """Write so many entities, two keys each, into files of equal size.

    Every entity in `moved` adds `step` bytes/s: in one file anywhere, in several in the first.
    Each file has an owner of its own.
    """
    for path in folder.glob("bench*.yaml"):
        path.unlink()
    size = entities // 2 // files
    for file in range(files):
        numbers = range(file * size, (file + 1) * size)
        text = _quotas(f"bench-{file}", numbers, moved if file == 0 else 0, step)
        (folder / f"bench-{file:02d}.yaml").write_text(text)


def _quotas(owner: str, numbers: range, moved: int, step: int) -> str:
    lines = [f"owner: {owner}", "quotas:"]
    for number in numbers:
        rate = 1_048_576 + number + (step if moved and number % moved == 0 else 0)
        lines += (
            f"  - user: user-{number:06d}",
            f"    limits: {{producer_byte_rate: {rate}, consumer_byte_rate: 2097152}}",
            f"  - user: user-{number:06d}",
            f"    client-id: app-{number % 100}",
            f"    limits: {{producer_byte_rate: {rate}, request_percentage: 50}}",
        )
    return "\n".join(lines) + "\n"


def write_snapshot(place: Path, entities: int) -> Path:
    """Write the quotas of `write_quotas` as describe prints them, and a default after them."""
    lines = ['{"entity": {"user": null}, "key": "request_percentage", "value": 5.0}']
    for number in range(entities // 2):
        user = {"user": f"user-{number:06d}"}
        pair = user | {"client-id": f"app-{number % 100}"}
        for entity, other in ((user, "consumer_byte_rate"), (pair, "request_percentage")):
            lines += (
                json.dumps({"entity": entity, "key": key, "value": 50.0 + number})
                for key in ("producer_byte_rate", other)
            )
    place.write_text("\n".join(lines) + "\n")
    return place
