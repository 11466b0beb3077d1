-- The three sides of every quota row, joined once, and what their meeting means.
--
-- In:  desired, actual, ledger, holds, clusters (see quota_ops/model/tables.py)
-- Out: differences. A row in sync that the ledger knows is no difference and is left out.
--
-- A key has at most two ledger rows: `verified`, what a run has read back, and `intended`, what a
-- run was about to send (null = a clear) and did not come to read back. An intent that the cluster
-- holds has arrived: it counts as verified would. One that it does not hold proves nothing, since
-- nobody knows whether it was ever sent.
WITH sides AS (
  SELECT
    cluster, entity, key,
    d.value AS desired,
    a.value AS actual,
    v.value AS verified,
    i.state IS NOT NULL AS unfinished,
    i.state IS NOT NULL AND i.value IS NOT DISTINCT FROM a.value AS arrived,
    d.owner, d.reason, d.file, d.line,
    v.owner AS verified_owner, i.owner AS intended_owner,
    v.file AS verified_file, i.file AS intended_file,
    v.commit AS verified_commit, i.commit AS intended_commit,
    v.run AS verified_run, i.run AS intended_run,
    v.at AS verified_at, i.at AS intended_at,
    a.in_scope,
    a.hands_off,
    h.held
  FROM desired AS d
  FULL OUTER JOIN actual AS a USING (cluster, entity, key)
  FULL OUTER JOIN (SELECT * FROM ledger WHERE state = 'verified') AS v USING (cluster, entity, key)
  FULL OUTER JOIN (SELECT * FROM ledger WHERE state = 'intended') AS i USING (cluster, entity, key)
  LEFT JOIN holds AS h USING (cluster, entity)
),

kinds AS (
  SELECT
    sides.*,
    arrived OR verified IS NULL AS told_by_intent,
    CASE
      WHEN desired = actual THEN 'in_sync'
      WHEN desired IS NOT NULL THEN CASE
        WHEN arrived OR actual = verified THEN 'pending'
        WHEN verified IS NULL AND actual IS NULL THEN 'pending'
        WHEN verified IS NULL THEN 'takeover'
        WHEN desired = verified THEN 'drifted'
        ELSE 'conflict'
      END
      WHEN actual IS NULL AND (arrived OR verified IS NULL) THEN 'cleared'
      WHEN actual IS NULL THEN 'gone'
      WHEN arrived OR actual = verified THEN 'removed'
      WHEN verified IS NULL THEN 'unmanaged'
      ELSE 'changed_since'
    END AS kind
  FROM sides
)

SELECT
  k.cluster, k.entity, k.key, k.kind,
  CASE
    WHEN k.kind = 'unmanaged' AND (k.hands_off IS NOT NULL OR NOT c.clear_unmanaged OR NOT k.in_scope)
      THEN 'report'
    WHEN k.held IS NOT NULL THEN 'held'
    WHEN k.kind = 'in_sync' THEN 'record'
    WHEN k.kind IN ('gone', 'cleared') THEN 'forget'
    WHEN k.hands_off IS NOT NULL THEN 'report'
    WHEN k.kind = 'drifted' AND c.drift = 'report' THEN 'report'
    WHEN k.kind IN ('pending', 'drifted', 'takeover', 'conflict') THEN 'set'
    ELSE 'clear'
  END AS action,
  k.actual AS before,
  k.desired AS after,
  k.verified,
  COALESCE(
    k.owner, CASE WHEN k.told_by_intent THEN k.intended_owner ELSE k.verified_owner END
  ) AS owner,
  k.reason,
  COALESCE(
    k.file, CASE WHEN k.told_by_intent THEN k.intended_file ELSE k.verified_file END
  ) AS file,
  k.line,
  CASE WHEN k.told_by_intent THEN k.intended_commit ELSE k.verified_commit END AS commit,
  CASE WHEN k.told_by_intent THEN k.intended_run ELSE k.verified_run END AS run,
  CASE WHEN k.told_by_intent THEN k.intended_at ELSE k.verified_at END AS since,
  k.hands_off,
  k.held
FROM kinds AS k
INNER JOIN clusters AS c ON k.cluster = c.cluster
WHERE
  k.kind <> 'in_sync'
  OR k.unfinished
  OR k.desired IS DISTINCT FROM k.verified
ORDER BY k.cluster, k.entity, k.key
