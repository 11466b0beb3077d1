-- Each day (UTC) of each cluster: its runs, its repairs, and its quotas at the last look.
--
-- In:  ends, drifts
-- Out: days. A run that ended several times on a day counts once, by its last end. Each end has the
-- changes of the earlier ones too.
WITH own AS (
  SELECT
    cluster, run, ended, sequence, stopped, stopped_at, blocked_by,
    changed - COALESCE(
      LAG(changed) OVER (PARTITION BY cluster, run, sequence ORDER BY ended), 0
    ) AS changed,
    SUBSTR(ended, 1, 10) AS date, mode IN ('look', 'apply') AND declared IS NOT NULL AS is_look,
    ended = MAX(ended) OVER (PARTITION BY cluster, run, date) AS is_last,
    {{
      'declared': declared, 'in_sync': in_sync, 'drifted': drifted, 'returned': returned,
      'pending': pending, 'held': held, 'unmanaged': unmanaged, 'unsettled': unsettled,
      'overriding': overriding, 'not_judged': not_judged
    }} AS states
  FROM ends
  WHERE entity IS NULL
),

of_days AS (
  SELECT
    cluster, date, COUNT(*) FILTER (is_last) AS runs, COUNT(*) FILTER (is_look) AS looks,
    COUNT(*) FILTER (is_last AND stopped IN ('failed', 'interrupted', 'killed', 'not ended')) AS failed,
    COUNT(*) FILTER (is_last AND stopped = 'refused' AND stopped_at <> 'plan') AS refused,
    COUNT(blocked_by) FILTER (is_last) AS blocked, SUM(changed) AS changed,
    ARG_MAX(states, (ended, COALESCE(sequence, 0), run)) FILTER (is_look) AS states
  FROM own
  GROUP BY cluster, date
),

repairs AS (
  SELECT
    cluster, SUBSTR(repaired, 1, 10) AS date, COUNT(*) AS repaired,
    -- How long a drift lasted that one run found and repaired is not known.
    PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY NULLIF(seconds, 0)) AS repair_median,
    PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY NULLIF(seconds, 0)) AS repair_p95
  FROM drifts
  WHERE repaired IS NOT NULL
  GROUP BY cluster, date
)

SELECT
  cluster, date, CAST(runs AS INT) AS runs, CAST(looks AS INT) AS looks,
  CAST(failed AS INT) AS failed, CAST(refused AS INT) AS refused, CAST(blocked AS INT) AS blocked,
  CAST(COALESCE(changed, 0) AS INT) AS changed, CAST(COALESCE(repaired, 0) AS INT) AS repaired,
  repair_median, repair_p95, UNNEST(states)
FROM of_days
LEFT JOIN repairs USING (cluster, date)
ORDER BY cluster, date
