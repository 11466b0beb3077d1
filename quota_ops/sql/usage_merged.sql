-- What clients used in spans of parts of some days.
--
-- In:  sums    from usage_sums.sql
--      series  from usage_series.sql
--      spans   key, user_name, client_id, part, span, surely, perhaps: the span that a part belongs to,
--              the rate from which on its use is at its limit, and the one below which it is not, or null
-- Out: the columns of USE in quota_ops/model/usage/digest.py
--
-- The percentile q is the smallest value that the use did not exceed in q percent of the time in
-- which brokers counted it. It is in the lowest bucket above which no more than the rest of that time
-- is. The middle of a bucket stands for its values; a use of 0 has no bucket.
WITH own AS (
  SELECT
    n.broker, n.key, n.user_name, n.client_id, n.series, n.part, n.idle, n.highest, n.throttled,
    s.span, s.surely, s.perhaps
  FROM spans AS s
  INNER JOIN series AS n
    ON
      s.part = n.part
      AND s.key = n.key
      AND s.user_name IS NOT DISTINCT FROM n.user_name
      AND s.client_id IS NOT DISTINCT FROM n.client_id
),

names AS (
  SELECT
    series, span, broker, key, user_name, client_id, MAX(surely) AS surely,
    MIN(perhaps) AS perhaps, MAX(highest) AS highest, BOOL_OR(throttled) AS throttled
  FROM own
  GROUP BY series, span, broker, key, user_name, client_id
),

buckets AS (
  SELECT o.series, o.span, u.bucket, SUM(u.seconds) AS seconds
  FROM sums AS u
  INNER JOIN own AS o ON u.series = o.series AND u.part = o.part
  GROUP BY o.series, o.span, u.bucket
  UNION ALL
  SELECT series, span, NULL AS bucket, SUM(idle) AS seconds FROM own GROUP BY series, span
),

ranked AS (
  SELECT
    series, span, seconds, COALESCE(POWER({base}, bucket - 0.5), 0.0) AS rate,
    POWER({base}, bucket - 1) AS above, COALESCE(POWER({base}, bucket), 0.0) AS most,
    SUM(seconds) OVER (PARTITION BY series, span) AS counted,
    SUM(seconds) OVER (
      PARTITION BY series, span ORDER BY COALESCE(bucket, -2147483648)
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS up_to
  FROM buckets
)

SELECT
  n.broker, n.key, n.user_name, n.client_id, CAST(n.span AS INT) AS span,
  CAST(MAX(r.counted) AS DOUBLE) AS counted,
  CAST(SUM(CASE WHEN r.above >= n.surely THEN r.seconds ELSE 0 END) AS DOUBLE) AS at_limit_least,
  CAST(
    SUM(CASE WHEN LEAST(n.highest, r.most) >= n.perhaps THEN r.seconds ELSE 0 END) AS DOUBLE
  ) AS at_limit,
  LEAST(n.highest, MIN(CASE WHEN up_to >= CEIL(50 * counted / 100.0) THEN rate END)) AS p50,
  LEAST(n.highest, MIN(CASE WHEN up_to >= CEIL(95 * counted / 100.0) THEN rate END)) AS p95,
  n.highest,
  n.throttled
FROM ranked AS r
INNER JOIN names AS n ON r.series = n.series AND r.span = n.span
GROUP BY n.series, n.span, n.broker, n.key, n.user_name, n.client_id, n.highest, n.throttled
