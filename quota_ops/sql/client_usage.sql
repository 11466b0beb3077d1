-- What the clients of an inventory use together of each limit of wanted keys that they share after
-- a change.
--
-- In:  classified, class_effects  the rows of client_classes.sql and class_effects.sql
-- Out: key, shared_user, shared_id, used: an empty name means any name
WITH wanted_keys AS (
  SELECT DISTINCT key FROM class_effects WHERE {wanted}
),

observed AS (
  SELECT
    c.class_user, c.class_id, c.user_name, c.client_id, k.key,
    CASE k.key {rates} END AS rate
  FROM classified AS c
  CROSS JOIN wanted_keys AS k
)

SELECT /*+ BROADCAST(e) */
  o.key,
  CASE WHEN e.by_user THEN o.user_name ELSE '' END AS shared_user,
  CASE WHEN e.by_client_id THEN o.client_id ELSE '' END AS shared_id,
  SUM(o.rate) AS used
FROM observed AS o
INNER JOIN class_effects AS e
  ON
    o.class_user IS NOT DISTINCT FROM e.class_user
    AND o.class_id IS NOT DISTINCT FROM e.class_id
    AND o.key = e.key
WHERE o.rate IS NOT NULL AND e.after IS NOT NULL
GROUP BY 1, 2, 3
