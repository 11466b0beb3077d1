-- What is to be written, as client-quota alterations numbered into requests.
--
-- In:  differences
-- Out: batches, one row per key; every row of an entity is in the same batch, because a broker
--      treats all keys of an entity alike and refuses an entity that it meets twice.
--
-- Entities that set anything come before those that only clear, so that a client is never
-- without a limit for longer than it must. A broker refuses 10,001 changed keys in one request,
-- and over 8 MiB its controller resigns although validate-only said yes: a batch is closed at
-- {max_keys} keys or {max_bytes} bytes, whichever is nearer for its entities (the one that crosses
-- it is still inside). Bytes: the entity's text, the key and 64 more for each record.
WITH writes AS (
  SELECT
    cluster, entity, key, before,
    CASE WHEN action = 'set' THEN after END AS after,
    CASE WHEN action = 'set' THEN 0 ELSE 1 END AS clears
  FROM differences
  WHERE action IN ('set', 'clear')
),

entities AS (
  SELECT
    cluster, entity,
    MIN(clears) AS only_clears,
    -- What it takes of a batch, which is {whole} = keys * bytes: whole numbers add up exactly.
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

SELECT
  w.cluster,
  CAST(n.batch AS INT) AS batch,
  w.entity, w.key, w.before, w.after
FROM writes AS w
INNER JOIN numbered AS n ON w.cluster = n.cluster AND w.entity = n.entity
ORDER BY w.cluster, n.batch, w.entity, w.key
