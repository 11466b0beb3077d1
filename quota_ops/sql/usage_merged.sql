-- What clients used in some days, from the digests of the days.
--
-- In:  digests  the columns of DIGEST in quota_ops/model/usage/digest.py
-- Out: the columns of USE there
--
-- The percentile q is the smallest value that the use did not exceed in q percent of the time that
-- was seen. It is in the lowest bucket above which no more than the rest of that time is. The middle
-- of a bucket stands for its values.
WITH coverage AS (
  SELECT broker, key, SUM(seconds) AS seen
  FROM digests
  WHERE user_name IS NULL AND client_id IS NULL
  GROUP BY broker, key
),

buckets AS (
  SELECT
    broker, key, user_name, client_id, bucket,
    SUM(CASE WHEN bucket IS NULL THEN 0 ELSE seconds END) AS seconds, MAX(highest) AS highest
  FROM digests
  WHERE user_name IS NOT NULL OR client_id IS NOT NULL
  GROUP BY broker, key, user_name, client_id, bucket
),

ranked AS (
  SELECT
    b.broker, b.key, b.user_name, b.client_id, b.bucket, b.seconds, b.highest, c.seen,
    COALESCE(SUM(b.seconds) OVER (
      PARTITION BY b.broker, b.key, b.user_name, b.client_id
      ORDER BY COALESCE(b.bucket, -2147483648) DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), 0) AS above
  FROM buckets AS b
  INNER JOIN coverage AS c ON b.broker = c.broker AND b.key = c.key
),

found AS (
  SELECT
    broker, key, user_name, client_id, seen,
    SUM(seconds) AS active,
    COALESCE(MAX(highest), 0.0) AS highest,
    MIN(CASE WHEN seen - above >= CEIL(50 * seen / 100.0) THEN bucket END) AS bucket_50,
    MIN(CASE WHEN seen - above >= CEIL(95 * seen / 100.0) THEN bucket END) AS bucket_95
  FROM ranked
  GROUP BY broker, key, user_name, client_id, seen
)

SELECT
  broker, key, user_name, client_id,
  CAST(seen AS DOUBLE) AS seen,
  CAST(active AS DOUBLE) AS active,
  CASE
    WHEN seen - active >= CEIL(50 * seen / 100.0) THEN 0.0
    ELSE LEAST(highest, POWER({base}, bucket_50 - 0.5))
  END AS p50,
  CASE
    WHEN seen - active >= CEIL(95 * seen / 100.0) THEN 0.0
    ELSE LEAST(highest, POWER({base}, bucket_95 - 0.5))
  END AS p95,
  highest
FROM found
