-- The unmanaged quotas that take clients from declared ones, because they are at an earlier level.
--
-- In:  levels, unmanaged, client_ids, sampled
-- Out: overrides: pairs of an unmanaged row and a declared row of which it takes clients. Every such
--      row, of either side, is in at least one pair; one that has several is in at least two.
--
-- The levels divide all clients into classes (quota_ops/precedence/resolution.py). A class is taken
-- if a declared row decides it among the declared and the protected rows, and an unmanaged row of
-- another value, or that other clients share, decides it among these and all rows that stay. Only
-- classes that an unmanaged row can decide are examined. Which row decides at the levels 4 to 8 does
-- not depend on which user it is, so users and client ids are never multiplied.
-- `taken` has the row that would decide without the unmanaged row, for each class that this decides.
WITH taken AS (
  SELECT
    cluster, key, entity,
    CASE level
      WHEN 1 THEN COALESCE(kept_2, kept_3, kept_4, kept_5, kept_6, kept_7, kept_8)
      WHEN 2 THEN COALESCE(kept_3, kept_5, kept_6, kept_8)
      WHEN 3 THEN CASE WHEN has_2 = 0 THEN COALESCE(kept_5, kept_6, kept_8) END
      WHEN 4 THEN COALESCE(kept_5, kept_6, kept_7, kept_8)
      WHEN 5 THEN COALESCE(kept_6, kept_8)
      WHEN 6 THEN CASE WHEN has_5 = 0 THEN kept_8 END
      WHEN 7 THEN CASE WHEN has_4 + has_5 + has_6 = 0 THEN kept_8 END
      WHEN 9 THEN kept_10
    END AS declared_entity
  FROM unmanaged
  UNION -- clients without a client id
  SELECT cluster, key, entity, kept_6 AS declared_entity
  FROM unmanaged
  WHERE level = 3
  UNION -- client ids with a row of their own at level 7
  SELECT u.cluster, u.key, u.entity, i.entity AS declared_entity
  FROM unmanaged AS u
  INNER JOIN client_ids AS i ON u.cluster = i.cluster AND u.key = i.key
  WHERE
    i.level = 7 AND i.has_4 = 0
    AND (u.level = 5 OR (u.level = 6 AND u.has_5 = 0))
  UNION -- client ids with a row of their own, of a user with an unmanaged one
  SELECT cluster, key, entity, declared_entity FROM sampled
)

SELECT
  t.cluster, t.entity, t.key, u.value, u.held, t.declared_entity, d.value AS declared,
  d.owner, d.file, d.line
FROM taken AS t
INNER JOIN levels AS d
  ON
    t.cluster = d.cluster AND t.key = d.key AND t.declared_entity = d.entity
    AND d.side = 'declared'
INNER JOIN levels AS u
  ON t.cluster = u.cluster AND t.key = u.key AND t.entity = u.entity AND u.side = 'unmanaged'
WHERE u.value IS DISTINCT FROM d.value OR u.shared <> d.shared
ORDER BY t.cluster, t.entity, t.key, t.declared_entity
