-- What happened to each quota, up to now.
--
-- In:  ends, drifts, quotas_before (the quotas of an earlier summary)
-- Out: quotas
WITH last_drifts AS (
  SELECT
    *,
    SUM(times_seen) OVER (PARTITION BY cluster, entity, key) AS all_times,
    SUM(CASE WHEN before THEN 0 ELSE 1 END) OVER (PARTITION BY cluster, entity, key) AS new_drifts,
    MIN(since) OVER (PARTITION BY cluster, entity, key) AS first_since,
    MAX(repaired) OVER (PARTITION BY cluster, entity, key) AS last_repaired,
    ROW_NUMBER() OVER (PARTITION BY cluster, entity, key ORDER BY since DESC, last_seen DESC) AS back
  FROM drifts
),

repairs AS (
  SELECT
    cluster, entity, key, repaired_by,
    ROW_NUMBER() OVER (PARTITION BY cluster, entity, key ORDER BY repaired DESC) AS back
  FROM drifts
  WHERE repaired IS NOT NULL
),

writes AS (
  SELECT
    cluster, entity, key, ended, run, commit, author, run_reason, requested,
    CASE WHEN mode = 'alter' THEN 1 ELSE 0 END AS is_alter,
    ROW_NUMBER() OVER (
      PARTITION BY cluster, entity, key, CASE WHEN mode = 'alter' THEN 1 ELSE 0 END
      ORDER BY ended DESC, COALESCE(sequence, 0) DESC, run DESC
    ) AS back
  FROM ends
  WHERE entity IS NOT NULL AND outcome = 'accepted' AND mode IN ('apply', 'rollback', 'alter')
),

owned AS (
  SELECT
    cluster, entity, key, owner,
    ROW_NUMBER() OVER (
      PARTITION BY cluster, entity, key
      ORDER BY ended DESC, COALESCE(sequence, 0) DESC, run DESC
    ) AS back
  FROM ends
  WHERE entity IS NOT NULL AND owner IS NOT NULL AND (
    outcome = 'accepted' AND mode IN ('apply', 'rollback', 'alter')
    OR mode IN ('look', 'apply')
    AND kind IN ({kinds})
  )
),

names AS (
  SELECT cluster, entity, key FROM quotas_before
  UNION
  SELECT cluster, entity, key FROM drifts
  UNION
  SELECT cluster, entity, key FROM writes
)

SELECT
  names.cluster, names.entity, names.key,
  COALESCE(owned.owner, old.owner) AS owner,
  CAST(COALESCE(old.drifts, 0) + COALESCE(drift.new_drifts, 0) AS INT) AS drifts,
  CAST(COALESCE(old.times_seen, 0) + COALESCE(drift.all_times, 0) AS INT) AS times_seen,
  COALESCE(old.first_seen, drift.first_since) AS first_seen,
  COALESCE(drift.last_seen, old.last_seen) AS last_seen,
  -- Each drift of the earlier summary that lasts is among the drifts.
  CASE WHEN drift.repaired IS NULL THEN drift.since END AS drifted_since,
  CASE WHEN drift.cluster IS NULL THEN old.kind ELSE drift.kind END AS kind,
  CASE WHEN drift.cluster IS NULL THEN old.desired ELSE drift.desired END AS desired,
  CASE WHEN drift.cluster IS NULL THEN old.actual ELSE drift.actual END AS actual,
  COALESCE(drift.last_repaired, old.repaired) AS repaired,
  CASE WHEN repair.cluster IS NULL THEN old.repaired_by ELSE repair.repaired_by END AS repaired_by,
  COALESCE(wrote.ended, old.set_at) AS set_at,
  COALESCE(wrote.run, old.set_run) AS set_run,
  CASE WHEN wrote.run IS NULL THEN old.set_commit ELSE wrote.commit END AS set_commit,
  CASE WHEN wrote.run IS NULL THEN old.set_by ELSE wrote.author END AS set_by,
  CASE WHEN wrote.run IS NULL THEN old.set_value ELSE wrote.requested END AS set_value,
  COALESCE(altered.ended, old.altered_at) AS altered_at,
  COALESCE(altered.run, old.altered_run) AS altered_run,
  CASE WHEN altered.run IS NULL THEN old.altered_by ELSE altered.author END AS altered_by,
  CASE WHEN altered.run IS NULL THEN old.altered_reason ELSE altered.run_reason END
    AS altered_reason,
  CASE WHEN altered.run IS NULL THEN old.altered_value ELSE altered.requested END AS altered_value
FROM names
LEFT JOIN quotas_before AS old
  ON old.cluster = names.cluster AND old.entity = names.entity AND old.key = names.key
LEFT JOIN last_drifts AS drift
  ON drift.cluster = names.cluster AND drift.entity = names.entity AND drift.key = names.key
  AND drift.back = 1
LEFT JOIN owned
  ON owned.cluster = names.cluster AND owned.entity = names.entity AND owned.key = names.key
  AND owned.back = 1
LEFT JOIN repairs AS repair
  ON repair.cluster = names.cluster AND repair.entity = names.entity AND repair.key = names.key
  AND repair.back = 1
LEFT JOIN writes AS wrote
  ON wrote.cluster = names.cluster AND wrote.entity = names.entity AND wrote.key = names.key
  AND wrote.is_alter = 0 AND wrote.back = 1
LEFT JOIN writes AS altered
  ON altered.cluster = names.cluster AND altered.entity = names.entity AND altered.key = names.key
  AND altered.is_alter = 1 AND altered.back = 1
ORDER BY names.cluster, names.entity, names.key
