-- Each day (UTC) of each cluster: its runs, its repairs, and its quotas at the last look.
--
-- In:  ends, drifts
-- Out: days. A run that ended several times on a day counts once, by its last end.
WITH last_ends AS (
  SELECT
    *, SUBSTR(ended, 1, 10) AS date,
    ROW_NUMBER() OVER (
      PARTITION BY cluster, run, SUBSTR(ended, 1, 10) ORDER BY ended DESC
    ) AS back,
    CASE WHEN mode IN ('look', 'apply') AND declared IS NOT NULL THEN 1 ELSE 0 END AS is_look
  FROM ends
  WHERE entity IS NULL
),

runs AS (
  SELECT
    cluster, date, COUNT(*) AS runs, SUM(changed) AS changed,
    SUM(CASE WHEN stopped IN ('failed', 'interrupted', 'not ended') THEN 1 ELSE 0 END) AS failed,
    SUM(
      CASE WHEN stopped = 'refused' AND stopped_at <> 'plan' THEN 1 ELSE 0 END
    ) AS refused,
    SUM(CASE WHEN blocked_by IS NOT NULL THEN 1 ELSE 0 END) AS blocked
  FROM last_ends
  WHERE back = 1
  GROUP BY cluster, date
),

states AS (
  SELECT
    *,
    COUNT(*) OVER (PARTITION BY cluster, date) AS looks,
    ROW_NUMBER() OVER (
      PARTITION BY cluster, date ORDER BY ended DESC, COALESCE(sequence, 0) DESC, run DESC
    ) AS back_of_day
  FROM last_ends
  WHERE is_look = 1
),

repairs AS (
  SELECT
    cluster, SUBSTR(repaired, 1, 10) AS date, COUNT(*) AS repaired,
    -- How long a drift lasted that one run found and repaired is not known.
    PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY NULLIF(seconds, 0)) AS repair_median,
    PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY NULLIF(seconds, 0)) AS repair_p95
  FROM drifts
  WHERE repaired IS NOT NULL
  GROUP BY cluster, SUBSTR(repaired, 1, 10)
)

SELECT
  runs.cluster, runs.date, CAST(runs.runs AS INT) AS runs, CAST(COALESCE(looks, 0) AS INT) AS looks,
  CAST(failed AS INT) AS failed, CAST(runs.refused AS INT) AS refused,
  CAST(blocked AS INT) AS blocked, CAST(COALESCE(runs.changed, 0) AS INT) AS changed,
  CAST(COALESCE(repairs.repaired, 0) AS INT) AS repaired, repair_median, repair_p95,
  declared, in_sync, drifted, returned, pending, held, unmanaged, unsettled, overriding,
  not_judged
FROM runs
LEFT JOIN states
  ON states.cluster = runs.cluster AND states.date = runs.date AND back_of_day = 1
LEFT JOIN repairs ON repairs.cluster = runs.cluster AND repairs.date = runs.date
ORDER BY runs.cluster, runs.date
