-- The buckets of a day of samples.
--
-- In:  rates    time, broker, key, user_name, client_id, value: at most one row of a series and time
--      scrapes  time, broker, up: whether the broker was seen, at the times of its rates
--      delayed  broker, key, user_name, client_id: the series that were throttled on that day
-- Out: the columns of BUCKETS in quota_ops/model/usage/digest.py
--
-- A value that is no number, or too large for a rate, stands for no time: a series without any other
-- has a row of 0 seconds. Of series without both names, only use above 0 counts.
--
-- A sample stands for the time until the next scrape, {step} seconds at most: the rest of a longer gap
-- was not seen. Of a scrape that failed nothing counts.
WITH intervals AS (
  SELECT
    broker, time, up,
    LEAST({step} * 1000, COALESCE(
      unix_millis(LEAD(time) OVER (PARTITION BY broker ORDER BY time)) - unix_millis(time),
      {step} * 1000
    )) AS millis
  FROM scrapes
),

seen AS (
  SELECT broker, time, millis FROM intervals WHERE up
),

numbers AS (
  SELECT
    time, broker, key, user_name, client_id,
    CASE WHEN ABS(value) < {largest} THEN value END AS value  -- NaN is above it
  FROM rates
),

used AS (
  SELECT
    r.broker, r.key, r.user_name, r.client_id, r.value,
    CASE WHEN r.value IS NULL THEN 0 ELSE s.millis END AS millis,
    CASE WHEN r.value > 0 THEN CAST(CEIL(LN(r.value) / LN({base})) AS INT) END AS bucket
  FROM numbers AS r
  INNER JOIN seen AS s ON r.broker = s.broker AND r.time = s.time
),

buckets AS (
  SELECT
    broker, key, user_name, client_id, bucket,
    SUM(millis) AS millis, MAX(value) AS highest
  FROM used
  WHERE user_name IS NOT NULL OR client_id IS NOT NULL OR bucket IS NOT NULL
  GROUP BY broker, key, user_name, client_id, bucket
)

SELECT
  '{day}' AS day, b.broker, b.key, b.user_name, b.client_id, b.bucket,
  CAST(ROUND(b.millis / 1000.0) AS INT) AS seconds,
  CASE
    WHEN b.bucket IS NOT NULL
      -- Seven digits take half the space.
      THEN CAST(CAST(b.highest AS FLOAT) AS DOUBLE)
  END AS highest,
  d.broker IS NOT NULL AS throttled
FROM buckets AS b
LEFT JOIN delayed AS d
  ON
    b.broker = d.broker
    AND b.key = d.key
    AND b.user_name IS NOT DISTINCT FROM d.user_name
    AND b.client_id IS NOT DISTINCT FROM d.client_id
