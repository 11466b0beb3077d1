-- What happened to each quota, up to now.
--
-- In:  ends, drifts
-- Out: quotas
WITH drifted AS (
  SELECT
    cluster, entity, key, COUNT(*) AS drifts, SUM(times_seen) AS times_seen,
    MIN(since) AS first_seen, MAX(repaired) AS repaired,
    ARG_MAX(drifts, repaired).repaired_by AS repaired_by,
    ARG_MAX(drifts, (repaired IS NULL, since, last_seen)) AS last
  FROM drifts
  GROUP BY cluster, entity, key
),

-- A run that a person resumes ends again, with what it had written before.
sent AS (
  SELECT
    cluster, entity, key, run, sequence, ended, mode, commit, author, run_reason, actual, requested
  FROM ends
  WHERE entity IS NOT NULL AND outcome = 'accepted' AND mode IN ('apply', 'rollback', 'alter')
  QUALIFY ROW_NUMBER() OVER (PARTITION BY cluster, run, sequence, entity, key ORDER BY ended) = 1
),

written AS (
  SELECT
    cluster, entity, key,
    ARG_MAX(sent, (ended, COALESCE(sequence, 0), run)) FILTER (mode <> 'alter') AS wrote,
    ARG_MAX(sent, (ended, COALESCE(sequence, 0), run)) FILTER (
      -- Brokers ignore a value that they store already.
      mode = 'alter' AND requested IS DISTINCT FROM actual
    ) AS altered
  FROM sent
  GROUP BY cluster, entity, key
),

happened AS (
  SELECT *
  FROM drifted
  FULL JOIN written USING (cluster, entity, key)
),

owned AS (
  SELECT cluster, entity, key, ARG_MAX(owner, (ended, COALESCE(sequence, 0), run)) AS owner
  FROM ends
  WHERE entity IS NOT NULL AND (
    outcome = 'accepted' AND mode IN ('apply', 'rollback', 'alter')
    OR mode IN ('look', 'apply')
    AND kind IN ({kinds})
  )
  GROUP BY cluster, entity, key
)

SELECT
  cluster, entity, key, owner, CAST(COALESCE(drifts, 0) AS INT) AS drifts,
  CAST(COALESCE(times_seen, 0) AS INT) AS times_seen, first_seen, last.last_seen,
  CASE WHEN last.repaired IS NULL THEN last.since END AS drifted_since,
  last.kind, last.desired, last.actual, repaired, repaired_by,
  wrote.ended AS set_at, wrote.run AS set_run, wrote.commit AS set_commit, wrote.author AS set_by,
  wrote.requested AS set_value,
  altered.ended AS altered_at, altered.run AS altered_run, altered.author AS altered_by,
  altered.run_reason AS altered_reason, altered.requested AS altered_value
FROM happened
LEFT JOIN owned USING (cluster, entity, key)
ORDER BY cluster, entity, key
