-- What clients used in spans of some days, and of times that are not recorded.
--
-- In:  sums      from usage_sums.sql
--      series    from usage_series.sql
--      spans     key, user_name, client_id, part, span, surely, perhaps: the span that a part belongs
--                to, the rate from which on its use is at its limit, and the one below which it is
--                not, or null
--      measured  the columns of USE in quota_ops/model/usage/digest.py, of times without a digest
-- Out: the columns of USE
--
-- The percentile q is the smallest value that the use did not exceed in q percent of the time in
-- which brokers counted it. It is in the lowest bucket above which no more than the rest of that time
-- is. The middle of a bucket stands for its values; a use of 0 has no bucket.
--
-- Of a time without a digest, the p50 stands for the lower half of its use, the p95 for what is
-- between them, and the highest for the rest. So no percentile of both is below the true one.
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

days AS (
  SELECT
    series, span, broker, key, user_name, client_id, MAX(surely) AS surely,
    MIN(perhaps) AS perhaps, MAX(highest) AS highest, BOOL_OR(throttled) AS throttled
  FROM own
  GROUP BY series, span, broker, key, user_name, client_id
),

others AS (
  SELECT
    HASH(broker, key, user_name, client_id) AS series, measured.*,
    CEIL(50 * counted / 100.0) AS lower_half, CEIL(95 * counted / 100.0) AS most_of_it
  FROM measured
),

names AS (
  SELECT
    series, span, broker, key, user_name, client_id, MAX(highest) AS highest,
    BOOL_OR(throttled) AS throttled
  FROM (
    SELECT series, span, broker, key, user_name, client_id, highest, throttled FROM days
    UNION ALL
    SELECT series, span, broker, key, user_name, client_id, highest, throttled FROM others
  )
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

steps AS (
  SELECT
    b.series, b.span, b.seconds, COALESCE(POWER({base}, b.bucket - 0.5), 0.0) AS rate,
    CASE WHEN POWER({base}, b.bucket - 1) >= d.surely THEN b.seconds ELSE 0 END AS at_limit_least,
    CASE
      WHEN LEAST(d.highest, COALESCE(POWER({base}, b.bucket), 0.0)) >= d.perhaps THEN b.seconds
      ELSE 0
    END AS at_limit
  FROM buckets AS b
  INNER JOIN days AS d ON b.series = d.series AND b.span = d.span
  UNION ALL
  SELECT series, span, lower_half AS seconds, p50 AS rate, at_limit_least, at_limit FROM others
  UNION ALL
  SELECT series, span, most_of_it - lower_half AS seconds, p95 AS rate, 0, 0 FROM others
  UNION ALL
  SELECT series, span, counted - most_of_it AS seconds, highest AS rate, 0, 0 FROM others
),

ranked AS (
  SELECT
    steps.*,
    SUM(seconds) OVER (PARTITION BY series, span) AS counted,
    SUM(seconds) OVER (
      PARTITION BY series, span ORDER BY rate
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS up_to
  FROM steps
)

SELECT
  n.broker, n.key, n.user_name, n.client_id, CAST(n.span AS INT) AS span,
  CAST(MAX(r.counted) AS DOUBLE) AS counted,
  CAST(SUM(r.at_limit_least) AS DOUBLE) AS at_limit_least,
  CAST(SUM(r.at_limit) AS DOUBLE) AS at_limit,
  LEAST(n.highest, MIN(CASE WHEN up_to >= CEIL(50 * counted / 100.0) THEN rate END)) AS p50,
  LEAST(n.highest, MIN(CASE WHEN up_to >= CEIL(95 * counted / 100.0) THEN rate END)) AS p95,
  n.highest,
  n.throttled
FROM ranked AS r
INNER JOIN names AS n ON r.series = n.series AND r.span = n.span
GROUP BY n.series, n.span, n.broker, n.key, n.user_name, n.client_id, n.highest, n.throttled
