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
--
-- A row is of a span and a broker, and `id` is the hash of both.
WITH own AS (
  SELECT
    HASH(s.span, n.broker) AS id, s.span, s.surely, s.perhaps,
    n.broker, n.key, n.user_name, n.client_id, n.series, n.idle, n.highest, n.throttled
  FROM spans AS s
  INNER JOIN series AS n
    ON
      s.part = n.part
      AND s.key = n.key
      AND s.user_name IS NOT DISTINCT FROM n.user_name
      AND s.client_id IS NOT DISTINCT FROM n.client_id
),

others AS (
  SELECT
    HASH(span, broker) AS id, measured.*,
    CEIL(50 * counted / 100.0) AS lower_half, CEIL(95 * counted / 100.0) AS most_of_it
  FROM measured
),

names AS (
  SELECT
    id, span, broker, key, user_name, client_id, MAX(highest) AS highest,
    BOOL_OR(throttled) AS throttled, MAX(surely) AS surely, MIN(perhaps) AS perhaps
  FROM (
    SELECT
      id, span, broker, key, user_name, client_id, highest, throttled, surely, perhaps
    FROM own
    UNION ALL
    SELECT
      id, span, broker, key, user_name, client_id, highest, throttled, NULL AS surely,
      NULL AS perhaps
    FROM others
  )
  GROUP BY id, span, broker, key, user_name, client_id
),

buckets AS (
  SELECT o.id, u.bucket, SUM(u.seconds) AS seconds
  FROM sums AS u
  INNER JOIN own AS o ON u.series = o.series
  GROUP BY o.id, u.bucket
  UNION ALL
  SELECT id, NULL AS bucket, SUM(idle) AS seconds FROM own GROUP BY id
),

steps AS (
  SELECT
    b.id, b.seconds, COALESCE(POWER({base}, b.bucket - 0.5), 0.0) AS rate,
    CASE WHEN POWER({base}, b.bucket - 1) >= n.surely THEN b.seconds ELSE 0 END AS at_limit_least,
    CASE
      WHEN LEAST(n.highest, COALESCE(POWER({base}, b.bucket), 0.0)) >= n.perhaps THEN b.seconds
      ELSE 0
    END AS at_limit
  FROM buckets AS b
  INNER JOIN names AS n ON b.id = n.id
  UNION ALL
  SELECT id, lower_half AS seconds, p50 AS rate, at_limit_least, at_limit FROM others
  UNION ALL
  SELECT id, most_of_it - lower_half AS seconds, p95 AS rate, 0, 0 FROM others
  UNION ALL
  SELECT id, counted - most_of_it AS seconds, highest AS rate, 0, 0 FROM others
),

ranked AS (
  SELECT
    steps.*,
    SUM(seconds) OVER (PARTITION BY id) AS counted,
    SUM(seconds) OVER (
      PARTITION BY id ORDER BY rate ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS up_to
  FROM steps
),

percentiles AS (
  SELECT
    id, MAX(counted) AS counted, SUM(at_limit_least) AS at_limit_least, SUM(at_limit) AS at_limit,
    MIN(CASE WHEN up_to >= CEIL(50 * counted / 100.0) THEN rate END) AS p50,
    MIN(CASE WHEN up_to >= CEIL(95 * counted / 100.0) THEN rate END) AS p95
  FROM ranked
  GROUP BY id
)

SELECT
  n.broker, n.key, n.user_name, n.client_id, CAST(n.span AS INT) AS span,
  CAST(p.counted AS DOUBLE) AS counted,
  CAST(p.at_limit_least AS DOUBLE) AS at_limit_least,
  CAST(p.at_limit AS DOUBLE) AS at_limit,
  LEAST(n.highest, p.p50) AS p50, LEAST(n.highest, p.p95) AS p95, n.highest, n.throttled
FROM percentiles AS p
INNER JOIN names AS n ON p.id = n.id
