-- What a change does to the limits of each class of clients.
--
-- In:  classes                      the rows of classes.sql
--      quota_keys                   key, unlimited: from this value on, a limit does not limit
--      limits_before, limits_after  as `limits` in resolve.sql, whose text is used for both
-- Out: one row per class and key: the limits, the levels that decide, and the verdict
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
    a.shared_by_user <> '' AS by_user,
    a.shared_by_client_id <> '' AS by_client_id
  FROM classes AS c
  INNER JOIN before AS b ON c.user_name = b.user_name AND c.client_id = b.client_id
  INNER JOIN after AS a ON c.user_name = a.user_name AND c.client_id = a.client_id AND b.key = a.key
  INNER JOIN quota_keys AS k ON b.key = k.key
)

SELECT
  sides.*,
  CASE
    WHEN before IS NOT DISTINCT FROM after THEN 'same'
    WHEN before IS NULL THEN 'newly limited'
    WHEN after IS NULL THEN 'no longer limited'
    WHEN after < before THEN 'cut'
    ELSE 'raised'
  END AS verdict
FROM sides
