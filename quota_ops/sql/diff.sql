-- Classify each quota that differs between Git, the cluster and the ledger.
--
-- In:  compared (see compare.sql), holds, clusters (see quota_ops/model/quotas/tables.py)
-- Out: differences
--
-- A key has at most one `verified` row: the value that a run read back. Its `intended` rows are the
-- values that runs were about to send (null = a clear) and that may still arrive. If the cluster
-- stores the value of the current one, which no later run has replaced or verified, it has arrived
-- (as `find_current` in quota_ops/model/plans/ledger_edits.py decides), and counts like a verified value.
-- Any other intent whose value the cluster stores is a late write. An intent whose value it does not
-- store proves nothing: it is unknown whether it was sent.
--
-- `altered` rows are the intents of alters. The value of a current one is a change outside Git, which
-- a person has just made, so nothing else explains that value. Any other one may be a late write.
--
-- The ledger also remembers the values that a run `cleared`. Late writes and cleared values never
-- decide alone that a row is managed: when Git does not declare it, a guard blocks the plan.
--
-- The flags of a ledger row that remembers a value, then those of its key:
--
--   is_back      the cluster stores its value
--   is_current   it is an intent that no later run has replaced or verified
--   arrived      both
--   recalled     its state, if it explains the cluster's value; of an old alter, `intended`; of a current one, null
--   place        1 for the row that explains the key's value best; the others are left out
--   is_open      an invalid file declared the key last, or may declare it
--   is_recalled  owner, file, run and time are those of this row, not of the verified one
WITH explained AS (
  SELECT
    r.*,
    r.memory_state IS NOT NULL AND r.recalled_value IS NOT DISTINCT FROM r.actual
    AND MAX(
      CASE
        WHEN r.memory_state = 'altered' AND COALESCE(r.recalled_sequence, 0) = r.current_number
          AND r.recalled_value = r.actual
          THEN 1
      END
    ) OVER (PARTITION BY r.cluster, r.entity, r.key) IS NULL AS is_back,
    r.memory_state = 'intended' AND COALESCE(r.recalled_sequence, 0) IS NOT DISTINCT FROM r.current_number
      AS is_current,
    CASE
      WHEN r.memory_state IS DISTINCT FROM 'altered' THEN r.memory_state
      WHEN COALESCE(r.recalled_sequence, 0) IS DISTINCT FROM r.current_number THEN 'intended'
    END AS recalled_state
  FROM compared AS r
),

sides AS (
  SELECT
    e.*,
    e.is_back AND e.is_current AS arrived,
    -- An intent of another value explains nothing.
    CASE WHEN e.recalled_state = 'cleared' OR e.is_back THEN e.recalled_state END AS recalled,
    h.held,
    -- The commit of a row of Git is the one that declared its value before: of the current intent,
    -- or else of the verified row. It is null if that had another value.
    MAX(CASE WHEN e.is_current THEN 1 END) OVER of_key AS has_current,
    MAX(CASE WHEN e.is_current AND e.recalled_value = e.desired THEN e.recalled_commit END)
      OVER of_key AS current_commit,
    -- A file with problems declared this managed row last, or may declare it now.
    c.invalid_files IS NOT NULL
    AND (e.verified IS NOT NULL OR e.recalled_state IS NOT NULL)
    AND (
      e.desired IS NULL
      OR POSITION(
        CHR(10) || COALESCE(e.verified_file, e.recalled_file) || CHR(10) IN c.invalid_files
      ) > 0
    ) AS is_open,
    -- Among all rows of a key, the one that best explains its current value: the current intent of
    -- that value, then another one, then a clear of it, then the last clear of any value.
    ROW_NUMBER() OVER (
      PARTITION BY e.cluster, e.entity, e.key
      ORDER BY
        CASE
          WHEN e.recalled_state IS NULL THEN 5
          WHEN e.is_back AND e.is_current THEN 0
          WHEN e.is_back AND e.recalled_state = 'intended' THEN 1
          WHEN e.is_back THEN 2
          WHEN e.recalled_state = 'cleared' THEN 3
          ELSE 4
        END,
        e.recalled_at DESC,
        e.recalled_run DESC,
        e.recalled_value DESC
    ) AS place
  FROM explained AS e
  INNER JOIN clusters AS c ON e.cluster = c.cluster
  LEFT JOIN holds AS h ON e.cluster = h.cluster AND e.entity = h.entity
  WINDOW of_key AS (PARTITION BY e.cluster, e.entity, e.key)
),

kinds AS (
  SELECT
    sides.*,
    CASE
      WHEN desired = actual THEN 'in_sync'
      WHEN COALESCE(desired, actual) IS NULL AND (verified IS NULL OR recalled = 'intended')
        THEN 'cleared'
      WHEN is_open THEN 'not_judged'
      WHEN desired IS NOT NULL THEN CASE
        WHEN arrived OR actual = verified THEN 'pending'
        WHEN verified IS NULL AND actual IS NULL THEN 'pending'
        WHEN recalled = 'intended' THEN 'late_write'
        WHEN verified IS NULL THEN 'takeover'
        WHEN desired = verified THEN 'drifted'
        ELSE 'conflict'
      END
      WHEN actual IS NULL THEN 'gone'
      WHEN arrived OR actual = verified THEN 'removed'
      WHEN is_back THEN 'returned'
      WHEN verified IS NULL THEN 'unmanaged'
      ELSE 'changed_since'
    END AS kind
  FROM sides
  WHERE place = 1 AND COALESCE(desired, actual, verified, CASE WHEN recalled_state IS NOT NULL THEN 0 END) IS NOT NULL
),

-- The ledger row from which a difference takes its owner, file, run and time: one that arrived or
-- came back, or else the verified one.
sourced AS (
  SELECT
    kinds.*,
    arrived
    OR (recalled IS NOT NULL AND kind IN ('late_write', 'returned', 'takeover', 'unmanaged'))
      AS is_recalled
  FROM kinds
)

SELECT
  k.cluster, k.entity, k.key, k.kind,
  CASE
    WHEN k.kind = 'unmanaged' AND (k.hands_off IS NOT NULL OR NOT c.clear_unmanaged OR NOT k.in_scope)
      THEN 'report'
    WHEN k.kind = 'returned' AND (k.hands_off IS NOT NULL OR NOT k.in_scope) THEN 'report'
    WHEN k.held IS NOT NULL OR k.kind = 'not_judged' THEN 'held'
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
  COALESCE(k.owner, CASE WHEN k.is_recalled THEN k.recalled_owner ELSE k.verified_owner END) AS owner,
  k.reason,
  COALESCE(k.file, CASE WHEN k.is_recalled THEN k.recalled_file ELSE k.verified_file END) AS file,
  k.line,
  CASE
    WHEN k.desired IS NULL
      THEN CASE WHEN k.is_recalled THEN k.recalled_commit ELSE k.verified_commit END
    WHEN k.has_current = 1 THEN k.current_commit
    WHEN k.desired = k.verified THEN k.verified_commit
  END AS commit,
  CASE WHEN k.is_recalled THEN k.recalled_run ELSE k.verified_run END AS run,
  CASE WHEN k.is_recalled THEN k.recalled_at ELSE k.verified_at END AS since,
  k.hands_off,
  k.held,
  CASE WHEN k.is_recalled AND NOT k.arrived THEN k.recalled END AS memory,
  k.derivation,
  k.until,
  -- What the guards judged with the value: later, a change of what it returns to is judged itself.
  CASE
    WHEN k.kind = 'in_sync' AND k.arrived THEN k.recalled_returns_to
    WHEN k.desired = k.verified THEN k.verified_returns_to
    WHEN k.kind <> 'in_sync' THEN k.returns_to
  END AS returns_to,
  CASE
    WHEN k.kind IN ('pending', 'removed') AND COALESCE(k.desired, 0)
      = CASE WHEN k.arrived THEN k.recalled_returns_to ELSE k.verified_returns_to END
      THEN TRUE
  END AS is_return,
  k.brokers,
  CAST(NULL AS INT) AS batch -- batches.sql numbers the requests
FROM sourced AS k
INNER JOIN clusters AS c ON k.cluster = c.cluster
ORDER BY k.cluster, k.entity, k.key
