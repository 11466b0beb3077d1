-- Each client and key of an inventory whose limit a change cuts, raises, adds or removes, or
-- other clients share; with another condition, each client and key.
--
-- In:  classified, class_effects, used  the rows of client_classes.sql, class_effects.sql and
--                                       client_usage.sql
-- Out: the columns of CLIENT_EFFECTS in quota_ops/model/plans/client_effects.py
SELECT /*+ BROADCAST(e) */
  c.user_name, c.client_id, c.owner, e.key, e.verdict,
  e.before, e.before_level, e.before_entity,
  e.after, e.after_level, e.after_entity,
  CASE e.key {rates} END AS observed,
  u.used,
  e.after - u.used AS head_room,
  COALESCE(u.used > e.after, FALSE) AS throttled
FROM classified AS c
INNER JOIN class_effects AS e
  ON
    c.class_user IS NOT DISTINCT FROM e.class_user
    AND c.class_id IS NOT DISTINCT FROM e.class_id
LEFT JOIN used AS u
  ON
    e.key = u.key
    AND CASE WHEN e.by_user THEN c.user_name ELSE '' END = u.shared_user
    AND CASE WHEN e.by_client_id THEN c.client_id ELSE '' END = u.shared_id
    AND e.after IS NOT NULL
WHERE {wanted}
