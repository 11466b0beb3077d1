-- Compare Git, the cluster and the ledger for every quota, and classify each difference.
--
-- In:  desired, actual, ledger, holds, clusters (see quota_ops/model/tables.py)
-- Out: differences. A row that is in sync and verified in the ledger is left out.
--
-- A key has at most two ledger rows: `verified`, the value that a run read back, and `intended`,
-- the value that a run was about to send (null = a clear) and did not read back. An intent whose
-- value the cluster stores has arrived (as `has_arrived` in quota_ops/model/ledger_edits.py
-- decides), and counts like a verified value. Any other intent proves nothing: it is unknown
-- whether it was sent.
--
-- The ledger also remembers, one row for each value of a key, `superseded` writes, which may still
-- arrive, and values that a run `cleared`. A memory never decides alone that a row is managed: when
-- Git does not declare a row that has a remembered value, a guard blocks the plan.
WITH differing AS (
  SELECT
    cluster, entity, key,
    d.value AS desired,
    a.value AS actual,
    v.value AS verified,
    i.state IS NOT NULL AND i.value IS NOT DISTINCT FROM a.value AS arrived,
    d.owner, d.reason, d.file, d.line,
    d.derivation, d.until, d.returns_to,
    v.returns_to AS verified_returns_to, i.returns_to AS intended_returns_to,
    v.owner AS verified_owner, i.owner AS intended_owner,
    v.file AS verified_file, i.file AS intended_file,
    v.commit AS verified_commit, i.commit AS intended_commit,
    v.run AS verified_run, i.run AS intended_run,
    v.at AS verified_at, i.at AS intended_at,
    a.in_scope,
    a.hands_off
  FROM desired AS d
  FULL OUTER JOIN actual AS a USING (cluster, entity, key)
  FULL OUTER JOIN (SELECT * FROM ledger WHERE state = 'verified') AS v USING (cluster, entity, key)
  FULL OUTER JOIN (SELECT * FROM ledger WHERE state = 'intended') AS i USING (cluster, entity, key)
  -- What follows is computed only for these rows: for few, unless much differs.
  WHERE
    d.value IS NULL
    OR d.value IS DISTINCT FROM a.value
    OR d.value IS DISTINCT FROM v.value
    OR i.state IS NOT NULL
),

memories AS (
  SELECT m.*
  FROM ledger AS m
  INNER JOIN clusters AS c ON m.cluster = c.cluster
  WHERE
    m.state IN ('cleared', 'superseded') -- a condition of its own, so Spark reads no other rows
    AND m.at >= CASE m.state WHEN 'cleared' THEN c.cleared_from ELSE c.superseded_from END
),

sides AS (
  SELECT
    d.*,
    -- A superseded write of another value explains nothing.
    CASE WHEN r.state = 'cleared' OR r.value IS NOT DISTINCT FROM d.actual THEN r.state END AS recalled,
    r.value AS recalled_value,
    r.owner AS recalled_owner, r.file AS recalled_file, r.commit AS recalled_commit,
    r.run AS recalled_run, r.at AS recalled_at,
    h.held,
    -- Among all memories of a key, the one that best explains its current value: a superseded write
    -- of that value, then a clear of it, then the last clear of any value.
    ROW_NUMBER() OVER (
      PARTITION BY d.cluster, d.entity, d.key
      ORDER BY
        CASE WHEN r.value IS NOT DISTINCT FROM d.actual THEN 0 WHEN r.state = 'cleared' THEN 1 ELSE 2 END,
        CASE WHEN r.state = 'superseded' THEN 0 ELSE 1 END,
        r.at DESC,
        r.run DESC,
        r.value DESC
    ) AS place
  FROM differing AS d
  LEFT JOIN memories AS r ON d.cluster = r.cluster AND d.entity = r.entity AND d.key = r.key
  LEFT JOIN holds AS h ON d.cluster = h.cluster AND d.entity = h.entity
),

kinds AS (
  SELECT
    sides.*,
    CASE
      WHEN desired = actual THEN 'in_sync'
      WHEN desired IS NOT NULL THEN CASE
        WHEN arrived OR actual = verified THEN 'pending'
        WHEN verified IS NULL AND actual IS NULL THEN 'pending'
        WHEN recalled = 'superseded' THEN 'late_write'
        WHEN verified IS NULL THEN 'takeover'
        WHEN desired = verified THEN 'drifted'
        ELSE 'conflict'
      END
      WHEN actual IS NULL AND (arrived OR verified IS NULL OR recalled = 'superseded')
        THEN 'cleared'
      WHEN actual IS NULL THEN 'gone'
      WHEN arrived OR actual = verified THEN 'removed'
      WHEN actual = recalled_value THEN 'returned'
      WHEN verified IS NULL THEN 'unmanaged'
      ELSE 'changed_since'
    END AS kind
  FROM sides
  WHERE place = 1
),

-- The ledger row from which a difference takes its owner, file, commit, run and time.
sourced AS (
  SELECT
    kinds.*,
    CASE
      WHEN kind IN ('late_write', 'returned', 'takeover', 'unmanaged') AND recalled IS NOT NULL
        THEN 'memory'
      WHEN arrived OR verified IS NULL THEN 'intent'
      ELSE 'verified'
    END AS ledger_row
  FROM kinds
)

SELECT
  k.cluster, k.entity, k.key, k.kind,
  CASE
    WHEN k.kind = 'unmanaged' AND (k.hands_off IS NOT NULL OR NOT c.clear_unmanaged OR NOT k.in_scope)
      THEN 'report'
    WHEN k.kind = 'returned' AND (k.hands_off IS NOT NULL OR NOT k.in_scope) THEN 'report'
    WHEN k.held IS NOT NULL THEN 'held'
    WHEN k.kind = 'in_sync' THEN 'record'
    WHEN k.kind IN ('gone', 'cleared') THEN 'forget'
    WHEN k.hands_off IS NOT NULL THEN 'report'
    WHEN k.kind = 'drifted' AND c.drift = 'report' THEN 'report'
    WHEN k.kind IN ('pending', 'drifted', 'takeover', 'conflict', 'late_write') THEN 'set'
    ELSE 'clear'
  END AS action,
  k.actual AS before,
  k.desired AS after,
  k.verified,
  COALESCE(
    k.owner,
    CASE k.ledger_row
      WHEN 'memory' THEN k.recalled_owner
      WHEN 'intent' THEN k.intended_owner
      ELSE k.verified_owner
    END
  ) AS owner,
  k.reason,
  COALESCE(
    k.file,
    CASE k.ledger_row
      WHEN 'memory' THEN k.recalled_file
      WHEN 'intent' THEN k.intended_file
      ELSE k.verified_file
    END
  ) AS file,
  k.line,
  CASE k.ledger_row
    WHEN 'memory' THEN k.recalled_commit
    WHEN 'intent' THEN k.intended_commit
    ELSE k.verified_commit
  END AS commit,
  CASE k.ledger_row
    WHEN 'memory' THEN k.recalled_run
    WHEN 'intent' THEN k.intended_run
    ELSE k.verified_run
  END AS run,
  CASE k.ledger_row
    WHEN 'memory' THEN k.recalled_at
    WHEN 'intent' THEN k.intended_at
    ELSE k.verified_at
  END AS since,
  k.hands_off,
  k.held,
  CASE WHEN k.ledger_row = 'memory' THEN k.recalled END AS memory,
  k.derivation,
  k.until,
  k.returns_to,
  CASE
    WHEN k.kind IN ('pending', 'removed') AND COALESCE(k.desired, 0)
      = CASE k.ledger_row WHEN 'intent' THEN k.intended_returns_to ELSE k.verified_returns_to END
      THEN TRUE
  END AS is_return
FROM sourced AS k
INNER JOIN clusters AS c ON k.cluster = c.cluster
ORDER BY k.cluster, k.entity, k.key
