-- The three sides of every quota row, joined once, and what their meeting means.
--
-- In:  desired, actual, ledger, clusters (see quota_ops/model/tables.py)
-- Out: differences. A row in sync that the ledger knows is no difference and is left out.
--
-- A key has at most two ledger rows: `verified`, what a run has read back, and `intended`, what a
-- run was about to send (null = a clear). The cluster's value is ours when it is one of them.
WITH ours AS (
  SELECT
    cluster, entity, key,
    MAX(CASE WHEN state = 'verified' THEN value END) AS verified,
    MAX(CASE WHEN state = 'intended' THEN value END) AS intended,
    MAX(CASE WHEN state = 'verified' THEN 1 ELSE 0 END) = 1 AS has_verified,
    MAX(CASE WHEN state = 'intended' THEN 1 ELSE 0 END) = 1 AS has_intended,
    MAX(owner) AS owner,
    MAX(file) AS file,
    MAX(commit) AS commit,
    MAX(run) AS run,
    MAX(ledger.at) AS since
  FROM ledger
  GROUP BY cluster, entity, key
),

sides AS (
  SELECT
    cluster, entity, key,
    d.value AS desired,
    a.value AS actual,
    o.verified,
    o.has_verified IS NOT NULL AS in_ledger,
    COALESCE(o.has_verified, FALSE) AS has_verified,
    COALESCE(o.has_intended, FALSE) AND o.intended IS NULL AS clear_intended,
    (o.has_verified AND a.value IS NOT DISTINCT FROM o.verified)
      OR (o.has_intended AND a.value IS NOT DISTINCT FROM o.intended) AS actual_is_ours,
    d.value = o.verified OR (NOT o.has_verified AND d.value = o.intended) AS desired_is_ours,
    o.has_intended AS unfinished,
    d.owner AS asked_by_owner, o.owner AS known_owner,
    d.reason,
    d.file AS asked_in_file, o.file AS known_file,
    d.line,
    o.commit, o.run, o.since,
    a.in_scope,
    a.hands_off
  FROM desired AS d
  FULL OUTER JOIN actual AS a USING (cluster, entity, key)
  FULL OUTER JOIN ours AS o USING (cluster, entity, key)
),

kinds AS (
  SELECT
    sides.*,
    CASE
      WHEN desired = actual THEN 'in_sync'
      WHEN desired IS NOT NULL THEN CASE
        WHEN actual_is_ours THEN 'pending'
        WHEN NOT in_ledger AND actual IS NULL THEN 'pending'
        WHEN NOT in_ledger THEN 'takeover'
        WHEN NOT has_verified AND actual IS NULL THEN 'pending'
        WHEN desired_is_ours THEN 'drifted'
        ELSE 'conflict'
      END
      WHEN actual IS NULL AND clear_intended THEN 'cleared'
      WHEN actual IS NULL THEN 'gone'
      WHEN NOT in_ledger THEN 'unmanaged'
      WHEN actual_is_ours THEN 'removed'
      ELSE 'changed_since'
    END AS kind
  FROM sides
)

SELECT
  k.cluster, k.entity, k.key, k.kind,
  CASE
    WHEN k.kind = 'in_sync' THEN 'record'
    WHEN k.kind IN ('gone', 'cleared') THEN 'forget'
    WHEN k.hands_off IS NOT NULL THEN 'report'
    WHEN k.kind = 'drifted' AND c.drift = 'report' THEN 'report'
    WHEN k.kind IN ('pending', 'drifted', 'takeover', 'conflict') THEN 'set'
    WHEN k.kind IN ('removed', 'changed_since') THEN 'clear'
    WHEN c.clear_unmanaged AND k.in_scope THEN 'clear'
    ELSE 'report'
  END AS action,
  k.actual AS before,
  k.desired AS after,
  k.verified,
  COALESCE(k.asked_by_owner, k.known_owner) AS owner,
  k.reason,
  COALESCE(k.asked_in_file, k.known_file) AS file,
  k.line,
  k.commit, k.run, k.since,
  k.hands_off
FROM kinds AS k
INNER JOIN clusters AS c ON k.cluster = c.cluster
WHERE
  k.kind <> 'in_sync'
  OR k.unfinished IS NULL OR k.unfinished
  OR k.desired IS DISTINCT FROM k.verified
ORDER BY k.cluster, k.entity, k.key
