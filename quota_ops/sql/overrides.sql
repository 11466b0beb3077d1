-- The quotas that take clients from declared ones, because they are at an earlier level: unmanaged and
-- protected ones and, until it does, those that a plan clears.
--
-- In:  levels, unmanaged, sampled
-- Out: overrides: pairs of such a row and a declared row of which it takes clients. Every such row, of
--      either side, is in at least one pair with unmanaged rows if it has any, and in two if it has
--      several; the same holds for pairs with protected, and with leaving rows.
--
-- The levels divide all clients into classes (quota_ops/precedence/resolution.py). A class is taken
-- if a declared row decides it among the declared and the protected rows, and an unmanaged row of
-- another value, or that more clients share, decides it among these and all rows that stay; a
-- leaving row takes it among all rows. A protected row takes it from the row that would decide
-- without this one. Another spelling of a
-- declared address takes it whatever its value, because clearing one leaves the address without a
-- limit; a host name may be another spelling of each. Only classes that such
-- a row can decide are examined. Which row decides at the levels 4 to 8 does
-- not depend on which user it is, so users and client ids are never multiplied.
-- `taken` has the row that would decide without the unmanaged row, for each class that this decides.
WITH taken AS (
  SELECT
    cluster, key, entity,
    CASE level
      WHEN 1 THEN COALESCE(kept_2, kept_3, kept_4, kept_5, kept_6, kept_7, kept_8)
      WHEN 2 THEN COALESCE(kept_3, kept_5, kept_6, kept_8)
      WHEN 3 THEN CASE WHEN NOT has_2 THEN COALESCE(kept_5, kept_6, kept_8) END
      WHEN 4 THEN COALESCE(kept_5, kept_6, kept_7, kept_8)
      WHEN 5 THEN COALESCE(kept_6, kept_8)
      WHEN 6 THEN CASE WHEN NOT has_5 THEN kept_8 END
      WHEN 7 THEN CASE WHEN NOT (has_4 OR has_5 OR has_6) THEN kept_8 END
      WHEN 9 THEN COALESCE(kept_9, kept_10)
    END AS declared_entity
  FROM unmanaged
  UNION -- clients without a client id
  SELECT cluster, key, entity, kept_6 AS declared_entity
  FROM unmanaged
  WHERE level = 3
  UNION -- client ids with a row of their own at level 7
  SELECT u.cluster, u.key, u.entity, i.entity AS declared_entity
  FROM unmanaged AS u
  INNER JOIN levels AS i
    ON u.cluster = i.cluster AND u.key = i.key AND i.level = 7 AND i.side = 'declared'
  LEFT JOIN levels AS p
    ON
      i.cluster = p.cluster AND i.key = p.key AND i.client_id = p.client_id AND p.level = 4
      AND p.rank >= u.rank
  WHERE
    p.entity IS NULL
    AND ((u.level = 5 AND u.kept_6 IS NULL) OR (u.level = 6 AND NOT u.has_5))
  UNION -- client ids with a row of their own, of a user with an unmanaged one
  SELECT cluster, key, entity, declared_entity FROM sampled
),

-- How many client ids with a row of level 4 have one for a pair with the user of an unmanaged row.
pairs AS (
  SELECT u.cluster, u.key, u.entity, COUNT(*) AS ids
  FROM unmanaged AS u
  INNER JOIN levels AS p
    ON
      u.cluster = p.cluster AND u.key = p.key AND u.user_name = p.user_name
      AND p.level = 1 AND p.rank >= u.rank
  INNER JOIN levels AS c
    ON
      p.cluster = c.cluster AND p.key = c.key AND p.client_id = c.client_id
      AND c.level = 4 AND c.kept IS NOT NULL
  WHERE u.level = 3
  GROUP BY u.cluster, u.key, u.entity
),

-- Rows of a user whose limit client ids share that had one of level 4 or 5 for themselves.
gathering AS (
  SELECT u.cluster, u.key, u.entity
  FROM unmanaged AS u
  LEFT JOIN pairs AS p ON u.cluster = p.cluster AND u.key = p.key AND u.entity = p.entity
  LEFT JOIN (
    SELECT cluster, key, COUNT(*) AS ids
    FROM levels
    WHERE level = 4 AND kept IS NOT NULL
    GROUP BY cluster, key
  ) AS c ON u.cluster = c.cluster AND u.key = c.key
  WHERE
    u.level = 3 AND NOT u.has_2
    AND (u.kept_5 IS NOT NULL OR COALESCE(c.ids, 0) > COALESCE(p.ids, 0))
)

SELECT
  t.cluster, t.entity, t.key, u.value, u.held, t.declared_entity, d.value AS declared,
  d.owner, d.file, d.line, u.side
FROM taken AS t
INNER JOIN levels AS d
  ON
    t.cluster = d.cluster AND t.key = d.key AND t.declared_entity = d.entity
    AND d.side = 'declared'
INNER JOIN levels AS u
  ON t.cluster = u.cluster AND t.key = u.key AND t.entity = u.entity AND u.side <> 'declared'
LEFT JOIN gathering AS g
  ON d.level = 6 AND t.cluster = g.cluster AND t.key = g.key AND t.entity = g.entity
WHERE
  u.value IS DISTINCT FROM d.value OR u.shared <> d.shared OR d.level = 9 OR g.entity IS NOT NULL
ORDER BY t.cluster, t.entity, t.key, t.declared_entity
