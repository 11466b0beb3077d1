-- The drifts of quotas: each lasts from the first look that finds it to the first that does not,
-- or to the run that repairs it, or the alter that restores what Git declares. An overriding quota
-- is one: clients do not get what Git declares.
--
-- In:  ends
-- Out: drifts. A look is an end of a run that compared the cluster with Git. One that wrote nothing
-- was not later than the looks of later runs, whatever the clocks showed: it has the time of the
-- first of them. One that wrote may have waited for its approval while later runs looked; but if
-- one of them ended before it began, its clock was ahead. One that died had looked before it wrote.
-- A run that a person resumes ends again with its old reading: what it had repaired, or now found
-- as planned, is no new sight.
WITH compared AS (
  SELECT
    cluster, run, ended, sequence, mode, started, stopped,
    changed - COALESCE(
      LAG(changed) OVER (PARTITION BY cluster, run, sequence ORDER BY ended), 0
    ) AS wrote,
    MIN(CASE WHEN sequence IS NOT NULL THEN ended END) OVER (
      PARTITION BY cluster, cluster_id ORDER BY sequence, ended
      ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS latest
  FROM ends
  WHERE entity IS NULL AND mode IN ('look', 'apply') AND declared IS NOT NULL
),

timed AS (
  SELECT
    cluster, run, ended, sequence,
    CASE WHEN sequence IS NOT NULL
      AND (mode = 'look' OR wrote = 0 OR started > latest OR stopped IN ('killed', 'not ended'))
      THEN latest
      ELSE ended
    END AS looked
  FROM compared
),

looks AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY cluster ORDER BY looked, sequence, ended, run) AS look,
    ROW_NUMBER() OVER (PARTITION BY cluster, run, sequence ORDER BY ended) AS reading
  FROM timed
),

seen AS (
  SELECT
    ends.cluster, entity, key, owner, kind, look, looked AS since, looked AS last_seen,
    desired, actual, ends.run, ends.sequence, reading, state,
    CASE WHEN state IN ('changed', 'found', 'forgotten') THEN 1 ELSE 0 END AS is_repaired,
    CASE WHEN outcome = 'accepted' THEN ends.run END AS repaired_by
  FROM ends
  JOIN looks ON looks.cluster = ends.cluster AND looks.run = ends.run AND looks.ended = ends.ended
  WHERE
    entity IS NOT NULL
    AND kind IN ({kinds})
),

-- The values that alters changed; -1 is a cleared quota, because no limit is negative.
alters AS (
  SELECT
    cluster, entity, key, sequence AS restored_at, COALESCE(requested, -1) AS restored,
    ended AS restored_on, run AS restored_by
  FROM ends
  WHERE mode = 'alter' AND outcome = 'accepted' AND requested IS DISTINCT FROM actual
),

sights AS (
  SELECT
    seen.*, restored_at, restored_on, restored_by,
    MAX(is_repaired) OVER (
      PARTITION BY seen.cluster, run, sequence, seen.entity, seen.key ORDER BY reading
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS was_repaired
  FROM seen
  ASOF LEFT JOIN alters ON alters.cluster = seen.cluster AND alters.entity = seen.entity
    AND alters.key = seen.key AND restored = COALESCE(desired, -1) AND sequence < restored_at
),

marked AS (
  SELECT
    *,
    CASE
      WHEN LAG(look) OVER (PARTITION BY cluster, entity, key ORDER BY look) = look - 1
        AND LAG(is_repaired) OVER (PARTITION BY cluster, entity, key ORDER BY look) = 0
        AND COALESCE(
          LAG(restored_at) OVER (PARTITION BY cluster, entity, key ORDER BY look) > sequence, true
        )
      THEN 0 ELSE 1
    END AS begins
  FROM sights
  WHERE COALESCE(was_repaired, 0) = 0 AND NOT (reading > 1 AND state = 'found')
),

numbered AS (
  SELECT
    *,
    LEAD(look) OVER (PARTITION BY cluster, entity, key ORDER BY look) = look + 1
    AND LEAD(sequence) OVER (PARTITION BY cluster, entity, key ORDER BY look) > restored_at
    AS is_restored,
    SUM(begins) OVER (
      PARTITION BY cluster, entity, key ORDER BY look
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS drift
  FROM marked
),

summed AS (
  SELECT
    cluster, entity, key, owner, kind, last_seen, desired, actual, run, look, is_repaired,
    repaired_by, is_restored, restored_on, restored_by,
    MIN(since) OVER (PARTITION BY cluster, entity, key, drift) AS since,
    COUNT(*) OVER (PARTITION BY cluster, entity, key, drift) AS times_seen,
    MAX(look) OVER (PARTITION BY cluster, entity, key, drift) AS last_look
  FROM numbered
),

ended AS (
  SELECT
    summed.cluster, entity, key, owner, kind, since, last_seen, times_seen, desired, actual,
    summed.run,
    CASE
      WHEN is_repaired = 1 THEN last_seen WHEN is_restored THEN restored_on ELSE looks.looked
    END AS repaired,
    CASE
      WHEN is_repaired = 1 THEN repaired_by WHEN is_restored THEN restored_by
    END AS repaired_by
  FROM summed
  LEFT JOIN looks ON looks.cluster = summed.cluster AND looks.look = summed.look + 1
  WHERE summed.look = last_look
)

SELECT
  cluster, entity, key, owner, kind, since, last_seen, CAST(times_seen AS INT) AS times_seen,
  desired, actual, run, repaired, repaired_by,
  CAST(
    EPOCH(CAST(repaired AS TIMESTAMP)) - EPOCH(CAST(since AS TIMESTAMP)) AS DOUBLE
  ) AS seconds
FROM ended
ORDER BY cluster, entity, key, since
