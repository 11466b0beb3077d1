-- What a change does to the limits of each class of clients.
--
-- In:  classes                      the rows of classes.sql
--      quota_keys                   key, unlimited: from this value on, a limit does not limit
--      limits_before, limits_after  as `limits` in resolve.sql, whose text is used for both
-- Out: one row per class and key: the limits, the levels that decide, and the verdict
--
-- The verdict is that of ClassEffect.change in quota_ops/model/plans/effect.py. Who shares a limit follows
-- from the types of its entity, and so from its rank: a user's clients share those of 3 and 6, the
-- clients with a client id those of 7 and 8.
WITH before AS (
  WITH clients AS (SELECT user_name, client_id FROM classes),
  limits AS (SELECT * FROM limits_before)
  SELECT * FROM (
{resolved}
  ) AS resolved
),

after AS (
  WITH clients AS (SELECT user_name, client_id FROM classes),
  limits AS (SELECT * FROM limits_after)
  SELECT * FROM (
{resolved}
  ) AS resolved
),

sides AS (
  SELECT
    c.class_user, c.class_id, k.key,
    CASE WHEN b.value < k.unlimited THEN b.value END AS before,
    b.level AS before_level, b.entity AS before_entity,
    CASE WHEN a.value < k.unlimited THEN a.value END AS after,
    a.level AS after_level, a.entity AS after_entity,
    a.counted_by <> 'client-id' AS by_user, a.counted_by <> 'user' AS by_client_id,
    a.rank <= 6 AND b.rank > 6 OR a.rank NOT IN (3, 6) AND b.rank IN (3, 6) AS gains,
    b.rank <= 6 AND a.rank > 6 OR b.rank NOT IN (3, 6) AND a.rank IN (3, 6) AS loses
  FROM classes AS c
  INNER JOIN before AS b ON c.user_name = b.user_name AND c.client_id = b.client_id
  INNER JOIN after AS a ON c.user_name = a.user_name AND c.client_id = a.client_id AND b.key = a.key
  INNER JOIN quota_keys AS k ON b.key = k.key
)

SELECT
  sides.*,
  CASE
    WHEN before IS NULL AND after IS NULL THEN 'same'
    WHEN before IS NULL THEN 'newly limited'
    WHEN after IS NULL THEN 'no longer limited'
    WHEN after < before AND gains AND NOT loses THEN 'may get less'
    WHEN after > before AND loses THEN 'may get more'
    WHEN after = before AND loses AND gains THEN 'shared differently'
    WHEN after < before OR loses THEN 'cut'
    WHEN after > before OR gains THEN 'raised'
    ELSE 'same'
  END AS verdict
FROM sides
