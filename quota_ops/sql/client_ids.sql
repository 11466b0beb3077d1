-- The client ids for which a declared row of their own decides, for users without limits.
--
-- In:  levels
-- Out: client_ids: `entity` is that row, of level 4 or 7
WITH of_client AS (
  SELECT
    cluster, key, client_id,
    MAX(CASE WHEN level = 4 THEN kept END) AS kept_4,
    MAX(CASE WHEN level = 7 THEN kept END) AS kept_7
  FROM levels
  WHERE level IN (4, 7)
  GROUP BY cluster, key, client_id
),

of_anyone AS (
  SELECT
    cluster, key,
    MAX(CASE WHEN level IN (5, 6) THEN kept END) AS kept_5_or_6
  FROM levels
  GROUP BY cluster, key
)

SELECT c.cluster, c.key, c.client_id, d.entity, d.level, d.value, d.shared
FROM of_client AS c
INNER JOIN of_anyone AS a ON c.cluster = a.cluster AND c.key = a.key
INNER JOIN levels AS d
  ON
    c.cluster = d.cluster AND c.key = d.key AND d.side = 'declared'
    AND d.entity = COALESCE(c.kept_4, CASE WHEN a.kept_5_or_6 IS NULL THEN c.kept_7 END)
