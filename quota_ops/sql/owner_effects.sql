-- How many clients of each owner a change concerns, by verdict. A client with several keys counts
-- once for each verdict, and once among those that lose, or may because fewer clients share less.
--
-- In:  classified, class_effects  the rows of client_classes.sql and class_effects.sql
--      client_effects             the rows of client_effects.sql
-- Out: the columns of OWNER_EFFECTS in quota_ops/model/plans/client_effects.py
WITH concerned AS (
  SELECT
    class_user, class_id,
    COUNT(*) AS keys,
    MAX(CASE WHEN verdict = 'newly limited' THEN 1 ELSE 0 END) AS newly_limited,
    MAX(CASE WHEN verdict = 'cut' THEN 1 ELSE 0 END) AS cut,
    MAX(CASE WHEN verdict = 'raised' THEN 1 ELSE 0 END) AS raised,
    MAX(CASE WHEN verdict = 'no longer limited' THEN 1 ELSE 0 END) AS no_longer_limited,
    MAX(CASE WHEN verdict IN ('newly limited', 'cut', 'may get less') THEN 1 ELSE 0 END) AS losing,
    MAX(CASE WHEN verdict = 'shared differently' THEN 1 ELSE 0 END) AS shared_differently,
    MAX(CASE WHEN verdict = 'may get less' THEN 1 ELSE 0 END) AS may_get_less,
    MAX(CASE WHEN verdict = 'may get more' THEN 1 ELSE 0 END) AS may_get_more
  FROM class_effects
  WHERE verdict <> 'same'
  GROUP BY class_user, class_id
),

owners AS (
  SELECT /*+ BROADCAST(e) */
    c.owner,
    COUNT(*) AS clients,
    COALESCE(SUM(e.keys), 0) AS keys,
    COALESCE(SUM(e.newly_limited), 0) AS newly_limited,
    COALESCE(SUM(e.cut), 0) AS cut,
    COALESCE(SUM(e.raised), 0) AS raised,
    COALESCE(SUM(e.no_longer_limited), 0) AS no_longer_limited,
    COALESCE(SUM(e.losing), 0) AS losing,
    COALESCE(SUM(e.shared_differently), 0) AS shared_differently,
    COALESCE(SUM(e.may_get_less), 0) AS may_get_less,
    COALESCE(SUM(e.may_get_more), 0) AS may_get_more
  FROM classified AS c
  LEFT JOIN concerned AS e
    ON
      c.class_user IS NOT DISTINCT FROM e.class_user
      AND c.class_id IS NOT DISTINCT FROM e.class_id
  GROUP BY c.owner
),

throttled AS (
  SELECT owner, COUNT(*) AS throttled
  FROM (
    SELECT DISTINCT user_name, client_id, owner
    FROM client_effects
    WHERE
      throttled
      AND verdict NOT IN ('raised', 'no longer limited', 'same')
  ) AS clients
  GROUP BY owner
)

SELECT
  o.owner,
  CAST(o.clients AS INT) AS clients,
  CAST(o.keys AS INT) AS keys,
  CAST(o.newly_limited AS INT) AS newly_limited,
  CAST(o.cut AS INT) AS cut,
  CAST(o.raised AS INT) AS raised,
  CAST(o.no_longer_limited AS INT) AS no_longer_limited,
  CAST(o.losing AS INT) AS losing,
  CAST(COALESCE(t.throttled, 0) AS INT) AS throttled,
  CAST(o.shared_differently AS INT) AS shared_differently,
  CAST(o.may_get_less AS INT) AS may_get_less,
  CAST(o.may_get_more AS INT) AS may_get_more
FROM owners AS o
LEFT JOIN throttled AS t ON o.owner IS NOT DISTINCT FROM t.owner
ORDER BY o.owner
