-- The unmanaged, protected and leaving rows, each with the declared and protected rows that may decide for its clients.
--
-- In:  levels, spellings
-- Out: unmanaged: `kept_N` is the entity of level N that is declared or protected, `has_N` whether any
--      row of this rank has that level; both for the user, the client id or everyone that the row
--      names. `kept_9`
--      is the declared row of the same address in another spelling, or each one for a host name,
--      which a broker may resolve to any address.
WITH of_user AS (
  SELECT
    cluster, key, user_name,
    MAX(CASE WHEN level = 2 THEN kept END) AS kept_2,
    MAX(CASE WHEN level = 3 THEN kept END) AS kept_3,
    MAX(CASE WHEN level = 2 THEN rank ELSE 0 END) AS has_2
  FROM levels
  WHERE level IN (2, 3)
  GROUP BY cluster, key, user_name
),

of_client AS (
  SELECT
    cluster, key, client_id,
    MAX(CASE WHEN level = 4 THEN kept END) AS kept_4,
    MAX(CASE WHEN level = 7 THEN kept END) AS kept_7,
    MAX(CASE WHEN level = 4 THEN rank ELSE 0 END) AS has_4
  FROM levels
  WHERE level IN (4, 7)
  GROUP BY cluster, key, client_id
),

of_anyone AS (
  SELECT
    cluster, key,
    MAX(CASE WHEN level = 5 THEN kept END) AS kept_5,
    MAX(CASE WHEN level = 6 THEN kept END) AS kept_6,
    MAX(CASE WHEN level = 8 THEN kept END) AS kept_8,
    MAX(CASE WHEN level = 10 THEN kept END) AS kept_10,
    MAX(CASE WHEN level = 5 THEN rank ELSE 0 END) AS has_5,
    MAX(CASE WHEN level = 6 THEN rank ELSE 0 END) AS has_6
  FROM levels
  GROUP BY cluster, key
),

respelled AS (
  SELECT d.cluster, d.key, s.entity, d.entity AS kept_9
  FROM spellings AS s
  INNER JOIN levels AS d ON s.respelled = d.entity AND d.side = 'declared'
  UNION
  SELECT d.cluster, d.key, s.entity, d.entity AS kept_9
  FROM spellings AS s
  CROSS JOIN levels AS d
  WHERE s.respelled IS NULL AND d.level = 9 AND d.side = 'declared'
)

SELECT
  l.cluster, l.key, l.entity, l.user_name, l.client_id, l.level, l.value, l.side, l.rank,
  u.kept_2, u.kept_3, c.kept_4, a.kept_5, a.kept_6, c.kept_7, a.kept_8, r.kept_9, a.kept_10,
  COALESCE(u.has_2 >= l.rank, FALSE) AS has_2, COALESCE(c.has_4 >= l.rank, FALSE) AS has_4,
  a.has_5 >= l.rank AS has_5, a.has_6 >= l.rank AS has_6,
  -- Whether the row decides for clients of a user which other rows decide at the levels 4 to 8.
  (l.level = 2 AND u.kept_3 IS NULL) OR (l.level = 3 AND u.has_2 < l.rank) AS falls
FROM levels AS l
INNER JOIN of_anyone AS a ON l.cluster = a.cluster AND l.key = a.key
LEFT JOIN of_user AS u ON l.cluster = u.cluster AND l.key = u.key AND l.user_name = u.user_name
LEFT JOIN of_client AS c ON l.cluster = c.cluster AND l.key = c.key AND l.client_id = c.client_id
LEFT JOIN respelled AS r ON l.cluster = r.cluster AND l.key = r.key AND l.entity = r.entity
WHERE l.side IN ('unmanaged', 'protected', 'leaving')
