-- What happened to each quota, up to now.
--
-- In:  ends, drifts
-- Out: quotas
WITH last_drifts AS (
  SELECT
    *,
    SUM(times_seen) OVER (PARTITION BY cluster, entity, key) AS all_times,
    COUNT(*) OVER (PARTITION BY cluster, entity, key) AS drifts,
    MIN(since) OVER (PARTITION BY cluster, entity, key) AS first_since,
    MAX(repaired) OVER (PARTITION BY cluster, entity, key) AS last_repaired,
    ROW_NUMBER() OVER (
      PARTITION BY cluster, entity, key
      ORDER BY CASE WHEN repaired IS NULL THEN 0 ELSE 1 END, since DESC, last_seen DESC
    ) AS back
  FROM drifts
),

repairs AS (
  SELECT
    cluster, entity, key, repaired_by,
    ROW_NUMBER() OVER (PARTITION BY cluster, entity, key ORDER BY repaired DESC) AS back
  FROM drifts
  WHERE repaired IS NOT NULL
),

-- A run that a person resumes ends again, with what it had written before.
sent AS (
  SELECT
    cluster, entity, key, run, sequence, commit, author, run_reason, requested,
    CASE WHEN mode = 'alter' THEN 1 ELSE 0 END AS is_alter, ended,
    ROW_NUMBER() OVER (PARTITION BY cluster, run, sequence, entity, key ORDER BY ended) AS number
  FROM ends
  WHERE entity IS NOT NULL AND outcome = 'accepted' AND mode IN ('apply', 'rollback', 'alter')
),

writes AS (
  SELECT
    *,
    ROW_NUMBER() OVER (
      PARTITION BY cluster, entity, key, is_alter
      ORDER BY ended DESC, COALESCE(sequence, 0) DESC, run DESC
    ) AS back
  FROM sent
  WHERE number = 1
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
  SELECT cluster, entity, key FROM drifts
  UNION
  SELECT cluster, entity, key FROM writes
)

SELECT
  names.cluster, names.entity, names.key, owned.owner,
  CAST(COALESCE(drift.drifts, 0) AS INT) AS drifts,
  CAST(COALESCE(drift.all_times, 0) AS INT) AS times_seen,
  drift.first_since AS first_seen, drift.last_seen,
  CASE WHEN drift.repaired IS NULL THEN drift.since END AS drifted_since,
  drift.kind, drift.desired, drift.actual,
  drift.last_repaired AS repaired, repair.repaired_by,
  wrote.ended AS set_at, wrote.run AS set_run, wrote.commit AS set_commit, wrote.author AS set_by,
  wrote.requested AS set_value,
  altered.ended AS altered_at, altered.run AS altered_run, altered.author AS altered_by,
  altered.run_reason AS altered_reason, altered.requested AS altered_value
FROM names
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
