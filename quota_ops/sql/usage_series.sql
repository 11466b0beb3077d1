-- The series of the digests of some days: each day has a row without a bucket, or with the highest
-- value.
--
-- In:  digests, parts  as in usage_sums.sql
-- Out: series, part, broker, key, user_name, client_id, highest, throttled; is_number is false if no
--      sample was a number
SELECT
  HASH(d.broker, d.key, d.user_name, d.client_id) AS series, p.part,
  d.broker, d.key, d.user_name, d.client_id,
  COALESCE(MAX(d.highest), 0.0) AS highest, BOOL_OR(d.throttled) AS throttled,
  MAX(d.seconds) > 0 AS is_number
FROM digests AS d
INNER JOIN parts AS p ON d.day = p.day
WHERE d.bucket IS NULL OR d.highest IS NOT NULL
GROUP BY series, p.part, d.broker, d.key, d.user_name, d.client_id
