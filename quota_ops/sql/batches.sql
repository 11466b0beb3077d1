-- The differences, with the number of the request that writes each row. An unmanaged row that takes
-- clients from declared ones is overriding, unless it is protected. A row that would be cleared is
-- overriding only as another spelling of a declared address. It is reported instead: after the clear,
-- brokers would not apply the declared limit either.
--
-- In:  differences (batch is null), overrides
-- Out: differences. All rows of an entity that are written are in the same batch, because a broker
--      accepts or rejects all keys of an entity together, and rejects an entity named twice.
--
-- Entities that set a key come before entities that only clear keys, so that no client is without
-- a limit for longer than necessary. A broker rejects a request with 10,001 changed keys. Over
-- 8 MiB its controller resigns, even if the broker accepted the request with validate-only.
-- A batch is therefore closed at {max_keys} keys or {max_bytes} bytes, whichever comes first; the
-- entity that crosses the limit is still in it. Bytes of a record: the text of the entity, the key
-- and 64 more.
WITH decided AS (
  SELECT
    {columns},
    CASE WHEN o.entity IS NULL THEN d.kind ELSE 'overriding' END AS kind,
    CASE WHEN o.entity IS NOT NULL AND d.action = 'clear' THEN 'report' ELSE d.action END AS action
  FROM differences AS d
  LEFT JOIN (SELECT DISTINCT cluster, entity, key FROM overrides WHERE side = 'unmanaged') AS o
    ON d.cluster = o.cluster AND d.entity = o.entity AND d.key = o.key
),

writes AS (
  SELECT cluster, entity, key, CASE WHEN action = 'set' THEN 0 ELSE 1 END AS clears
  FROM decided
  WHERE action IN ('set', 'clear')
),

entities AS (
  SELECT
    cluster, entity,
    MIN(clears) AS only_clears,
    -- The entity's share of a batch, in units of 1 / {whole} (keys * bytes): integers add exactly.
    GREATEST(
      COUNT(*) * {max_bytes},
      SUM(bit_length(entity) / 8 + bit_length(key) / 8 + 64) * {max_keys}
    ) AS share
  FROM writes
  GROUP BY cluster, entity
),

sums AS (
  SELECT
    cluster, entity, share,
    SUM(share) OVER (
      PARTITION BY cluster ORDER BY only_clears, entity
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS share_so_far
  FROM entities
),

numbered AS (
  SELECT
    cluster, entity,
    DENSE_RANK() OVER (
      PARTITION BY cluster ORDER BY FLOOR((share_so_far - share) / {whole})
    ) AS batch
  FROM sums
)

SELECT d.*, CAST(n.batch AS INT) AS batch
FROM decided AS d
LEFT JOIN numbered AS n
  ON d.cluster = n.cluster AND d.entity = n.entity AND d.action IN ('set', 'clear')
ORDER BY d.cluster, d.entity, d.key
