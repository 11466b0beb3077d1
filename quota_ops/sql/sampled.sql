-- Pairs of an unmanaged, protected or leaving row of a user and a declared row of a client id that it takes from that user.
--
-- In:  levels, unmanaged, client_ids
-- Out: sampled. A row of a user takes every one of these client ids without a row for the pair of
--      both. In place of all pairs, each row is joined with enough of the other side: of 2n + 4 in
--      this order, n of which have a pair of their own, at least two have another value, unless fewer do.
WITH numbered_ids AS (
  SELECT
    n.*,
    CAST(FLOOR((ROW_NUMBER() OVER (
      PARTITION BY cluster, key, level ORDER BY turn, value, client_id
    ) + 1) / 2) AS INT) AS slot
  FROM (
    SELECT
      client_ids.*,
      ROW_NUMBER() OVER (PARTITION BY cluster, key, level, value ORDER BY client_id) AS turn
    FROM client_ids
  ) AS n
),

numbered_falling AS (
  SELECT
    n.*,
    CAST(FLOOR((ROW_NUMBER() OVER (
      PARTITION BY cluster, key, level, side ORDER BY turn, value, user_name
    ) + 1) / 2) AS INT) AS slot
  FROM (
    SELECT
      unmanaged.*,
      ROW_NUMBER() OVER (
        PARTITION BY cluster, key, level, side, value ORDER BY user_name
      ) AS turn
    FROM unmanaged
    WHERE falls
  ) AS n
),

own_pairs AS (
  SELECT
    l.cluster, l.key, l.user_name, l.client_id, f.level AS falling_level, f.side, i.level AS id_level,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY l.cluster, l.key, l.user_name, f.level, i.level ORDER BY l.client_id
    ) AS INT) + 2 AS slot_of_user,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY l.cluster, l.key, l.client_id, f.level, f.side, i.level ORDER BY l.user_name
    ) AS INT) + 2 AS slot_of_id
  FROM levels AS l
  INNER JOIN unmanaged AS f
    ON l.cluster = f.cluster AND l.key = f.key AND l.user_name = f.user_name AND f.falls
  INNER JOIN client_ids AS i ON l.cluster = i.cluster AND l.key = i.key AND l.client_id = i.client_id
  WHERE l.level = 1
),

slots_of_users AS (
  SELECT cluster, key, user_name, level AS falling_level, s.id_level, s.slot
  FROM unmanaged
  CROSS JOIN (VALUES (4, 1), (4, 2), (7, 1), (7, 2)) AS s (id_level, slot)
  WHERE falls
  UNION ALL
  SELECT cluster, key, user_name, falling_level, id_level, slot_of_user FROM own_pairs
),

slots_of_ids AS (
  SELECT cluster, key, client_id, level AS id_level, s.falling_level, t.side, s.slot
  FROM client_ids
  CROSS JOIN (VALUES (2, 1), (2, 2), (3, 1), (3, 2)) AS s (falling_level, slot)
  CROSS JOIN (VALUES ('unmanaged'), ('protected'), ('leaving')) AS t (side)
  UNION ALL
  SELECT cluster, key, client_id, id_level, falling_level, side, slot_of_id FROM own_pairs
),

sampled AS (
  SELECT
    s.cluster, s.key, s.user_name, n.client_id, s.falling_level, n.entity AS declared_entity
  FROM slots_of_users AS s
  INNER JOIN numbered_ids AS n
    ON s.cluster = n.cluster AND s.key = n.key AND s.id_level = n.level AND s.slot = n.slot
  UNION
  SELECT s.cluster, s.key, n.user_name, s.client_id, n.level, i.entity
  FROM slots_of_ids AS s
  INNER JOIN numbered_falling AS n
    ON s.cluster = n.cluster AND s.key = n.key AND s.falling_level = n.level
      AND s.side = n.side AND s.slot = n.slot
  INNER JOIN client_ids AS i
    ON s.cluster = i.cluster AND s.key = i.key AND s.client_id = i.client_id
)

SELECT f.cluster, f.key, f.entity, s.declared_entity
FROM sampled AS s
INNER JOIN unmanaged AS f
  ON
    s.cluster = f.cluster AND s.key = f.key AND s.user_name = f.user_name
    AND s.falling_level = f.level
LEFT JOIN levels AS own
  ON
    own.level = 1 AND s.cluster = own.cluster AND s.key = own.key
    AND s.user_name = own.user_name AND s.client_id = own.client_id AND own.rank >= f.rank
WHERE own.entity IS NULL
