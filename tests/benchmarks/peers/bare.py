"""The bare program to compare quota-ops with: YAML, describe, compare, validate, and no more.

`bare.py FOLDER BOOTSTRAP [apply]`: reads the YAML of the folder but cluster.yaml. With `apply` it
also writes, and polls until the broker agrees.
It keeps nothing, checks nothing, and reports nothing.
"""

import gc
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from kafka.net.compat import KafkaNetClient
from kafka.protocol.admin.client_quotas import AlterClientQuotasRequest, DescribeClientQuotasRequest

Entity = tuple[tuple[str, str | None], ...]
ENTITIES = 2_500


def desired(path: str) -> dict[Entity, dict[str, float]]:
    """Return the quotas that the files declare."""
    wanted: dict[Entity, dict[str, float]] = {}
    for file in sorted(Path(path).glob("bench*.yaml")):
        document: Any = yaml.compose(file.read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)
        for field, value in document.value:
            if field.value == "quotas":
                wanted.update(map(quota_of, value.value))
    return wanted


def quota_of(quota: Any) -> tuple[Entity, dict[str, float]]:
    """Return an entity and its limits."""
    names: dict[str, str] = {}
    limits: dict[str, float] = {}
    for key, node in quota.value:
        if key.value == "limits":
            limits = {one.value: float(limit.value) for one, limit in node.value}
        else:
            names[key.value] = node.value
    return tuple(sorted(names.items())), limits


def main(path: str, bootstrap: str, *, write: bool) -> None:
    """Do the least that a quota tool can do."""
    gc.disable()
    wanted = desired(path)
    client = KafkaNetClient(bootstrap_servers=bootstrap, receive_message_max_bytes=2**31 - 1)
    client.get_broker_version(timeout_ms=5_000)
    node = client.least_loaded_node()

    def ask(request: Any) -> Any:
        return client.send_and_receive(node, request, timeout_ms=60_000)

    def held() -> dict[Entity, dict[str, float]]:
        response = ask(DescribeClientQuotasRequest(components=[], strict=False))
        return {
            tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity)): {
                value.key: value.value for value in entry.values
            }
            for entry in response.entries
        }

    now = held()
    entries = []
    for entity, limits in wanted.items():
        have = now.get(entity, {})
        ops = [(key, value, False) for key, value in limits.items() if have.get(key) != value]
        ops += [(key, 0.0, True) for key in have if key not in limits]
        if ops:
            entries.append((list(entity), ops))
    for validate_only in (True, False) if write else (True,):
        for start in range(0, len(entries), ENTITIES):
            request = AlterClientQuotasRequest(entries[start : start + ENTITIES], validate_only)
            if any(entry.error_code for entry in ask(request).entries):
                sys.exit("refused")
    while write and any(now.get(entity) != limits for entity, limits in wanted.items()):
        time.sleep(0.02)
        now = held()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], write=sys.argv[3:] == ["apply"])
