"""The SQL that both engines run, with the limits of a batch."""

from importlib.resources import files

from quota_ops.model.quotas.difference import HISTORY_KINDS
from quota_ops.model.quotas.entity import MAX_NAME_BYTES
from quota_ops.model.quotas.quota import CLIENT_KEYS
from quota_ops.model.quotas.tables import DIFFERENCES
from quota_ops.model.usage.digest import BASE, LARGEST_RATE
from quota_ops.precedence.resolution import LEVELS


def read_sql(name: str, **values: object) -> str:
    """Return a file of SQL, whose first lines name its input and output, filled with values."""
    text = files("quota_ops.sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")
    return text.format(**values) if values else text


MAX_KEYS = 5_000
"""Changed keys in one request: half of the number that a broker rejects (QuorumController)."""
MAX_BYTES = 1_048_576
"""Bytes of records in one request: an eighth of KafkaRaftClient.MAX_BATCH_SIZE_BYTES."""
MOST_RATE = "1e300"
"""The largest rate that an inventory may have observed; it is finite."""
OF_ONE_ENGINE = "_dDfFxX"
"""What only one engine reads in a number, such as 1_000 and 5d."""
CHANGED, EVERY = "verdict <> 'same'", "TRUE"
"""Conditions of the effects: those that change a limit, or all of them."""
_RATES = " ".join(f"WHEN '{key}' THEN c.{key}" for key in CLIENT_KEYS)


def batches_text(max_keys: int = MAX_KEYS, max_bytes: int = MAX_BYTES) -> str:
    """Return batches.sql: from differences and overrides to differences that are complete.

    A batch is closed at `max_keys` or `max_bytes`.
    """
    decided = {"kind", "action", "batch"}
    columns = ", ".join(f"d.{name}" for name in DIFFERENCES.names if name not in decided)
    whole = max_keys * max_bytes
    return read_sql("batches", columns=columns, max_keys=max_keys, max_bytes=max_bytes, whole=whole)


OTHER_QUOTAS = """\
SELECT cluster, key, entity, before, held, CASE
  WHEN action = 'clear' THEN 'leaving'
  WHEN hands_off = 'protected' THEN 'protected'
  WHEN kind <> 'not_judged' AND COALESCE(hands_off, 'newly protected') = 'newly protected'
    THEN 'unmanaged'
END AS side
FROM differences
WHERE after IS NULL AND before IS NOT NULL AND action IN ('report', 'held', 'clear')"""
"""The quotas that only the cluster has, and no run sets."""
DECLARED_QUOTAS = """\
SELECT cluster, key, entity, value, owner, file, line FROM desired
WHERE key IN (SELECT key FROM others) AND (
  POSITION('user=' IN entity) = 0 OR POSITION('"' IN entity) > 0 OR entity LIKE '%user=<default>'
  OR SUBSTR(entity, POSITION('user=' IN entity))
    IN (SELECT REGEXP_EXTRACT(entity, 'user=[^"]*$') FROM others))"""
"""The declared quotas of the keys of `others`, without those of single users that it has not."""


def history_text(view: str) -> str:
    """Return the SQL of a view of the history, with HISTORY_KINDS; its file names its input."""
    kinds = ", ".join(f"'{kind}'" for kind in sorted(HISTORY_KINDS))
    return read_sql(f"history_{view}", kinds=kinds)


def inventory_text() -> str:
    """Return inventory.sql: from lines to the columns of INVENTORY."""
    rates = (f"TRY_CAST({key} AS DOUBLE) AS {key}" for key in CLIENT_KEYS)
    return read_sql("inventory", rates=", ".join(rates))


def wrong_clients_text() -> str:
    """Return wrong_clients.sql: from lines and inventory to the number of invalid lines."""
    rates = (
        f"COALESCE({key} IS NULL OR TRY_CAST({key} AS DOUBLE) BETWEEN 0 AND {MOST_RATE} AND "
        f"TRANSLATE(CAST({key} AS STRING), '{OF_ONE_ENGINE}', '') = CAST({key} AS STRING), FALSE)"
        for key in CLIENT_KEYS
    )
    return read_sql("wrong_clients", bits=8 * MAX_NAME_BYTES, rates=" AND ".join(rates))


def class_effects_text() -> str:
    """Return class_effects.sql, with resolve.sql for each side, to the effects of each class."""
    levels = " ".join(f"WHEN {level.rank} THEN '{level.name}'" for level in LEVELS)
    return read_sql("class_effects", resolved=read_sql("resolve", levels=levels))


def client_usage_text(wanted: str = CHANGED) -> str:
    """Return client_usage.sql: from classified and class_effects to the use of shared limits."""
    return read_sql("client_usage", rates=_RATES, wanted=wanted)


def client_effects_text(wanted: str = CHANGED) -> str:
    """Return client_effects.sql: to the columns of CLIENT_EFFECTS, where `wanted` is true."""
    return read_sql("client_effects", rates=_RATES, wanted=wanted)


def digest_text(day: str, step: int) -> str:
    """Return usage_digest.sql: from rates and scrapes, each `step` seconds, to DIGEST of a day."""
    values = {"day": day, "step": step, "base": BASE, "largest": LARGEST_RATE}
    return read_sql("usage_digest", **values)
