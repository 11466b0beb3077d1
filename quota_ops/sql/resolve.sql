-- The limit that applies to each client and key: that of the first of the broker's eight levels.
--
-- In:  clients     user_name, client_id; empty or null when the client sends none
--      quota_keys  key
--      limits      key, rank, user_name, client_id, entity, value: every stored limit with the rank of its level
-- Out: one row per client and key: the limit that applies, null if unlimited, whose it is, and by which
--      of their names brokers count the clients that share it
--
-- No limit for client ids applies to a client without a client id. If such a limit is at the first
-- level, it still decides whether the broker counts by user, by client id or by both. If all limits of
-- a key have the same types, the broker counts by those without looking up the client.
WITH requested AS (
  SELECT
    COALESCE(NULLIF(c.user_name, ''), 'ANONYMOUS') AS user_name,
    COALESCE(c.client_id, '') AS client_id,
    k.key
  FROM clients AS c
  CROSS JOIN quota_keys AS k
),

typed AS (
  SELECT
    limits.*,
    CASE WHEN rank IN (3, 6) THEN 'user' WHEN rank IN (7, 8) THEN 'client-id' ELSE 'both' END AS types
  FROM limits
),

of_key AS (
  SELECT key, CASE WHEN MIN(types) = MAX(types) THEN MIN(types) END AS types
  FROM typed
  GROUP BY key
),

found AS (
  SELECT r.*, l.rank, l.value, l.entity, l.types
  FROM requested AS r
  INNER JOIN typed AS l
    ON r.key = l.key AND r.user_name = l.user_name AND r.client_id = l.client_id
  UNION ALL
  SELECT r.*, l.rank, l.value, l.entity, l.types
  FROM requested AS r
  INNER JOIN typed AS l ON r.key = l.key AND r.user_name = l.user_name AND l.rank IN (2, 3)
  UNION ALL
  SELECT r.*, l.rank, l.value, l.entity, l.types
  FROM requested AS r
  INNER JOIN typed AS l ON r.key = l.key AND r.client_id = l.client_id AND l.rank IN (4, 7)
  UNION ALL
  SELECT r.*, l.rank, l.value, l.entity, l.types
  FROM requested AS r
  INNER JOIN typed AS l ON r.key = l.key AND l.rank IN (5, 6, 8)
),

ranked AS (
  SELECT found.*, CASE WHEN client_id <> '' OR types = 'user' THEN rank END AS applied
  FROM found
),

decided AS (
  SELECT
    user_name, client_id, key,
    MIN(applied) AS rank,
    MIN_BY(value, applied) AS value,
    MIN_BY(entity, applied) AS entity,
    MIN_BY(types, rank) AS types
  FROM ranked
  GROUP BY user_name, client_id, key
)

SELECT
  r.user_name, r.client_id, r.key, d.value, d.rank, d.entity,
  CASE d.rank {levels} END AS level,
  COALESCE(k.types, d.types, 'client-id') AS counted_by
FROM requested AS r
LEFT JOIN decided AS d
  ON r.user_name = d.user_name AND r.client_id = d.client_id AND r.key = d.key
LEFT JOIN of_key AS k ON r.key = k.key
