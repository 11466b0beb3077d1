-- The series of the digests of some days.
--
-- In:  digests, parts  as in usage_sums.sql
-- Out: series, part, broker, key, user_name, client_id, idle, highest, throttled; is_number is false
--      if no sample was a number
SELECT
  HASH(d.broker, d.key, d.user_name, d.client_id, p.part) AS series, p.part,
  d.broker, d.key, d.user_name, d.client_id, CAST(SUM(d.idle) AS INT) AS idle,
  COALESCE(MAX(d.highest), 0.0) AS highest, BOOL_OR(d.throttled) AS throttled,
  MAX(d.idle) > 0 OR COUNT(d.highest) > 0 AS is_number
FROM digests AS d
INNER JOIN parts AS p ON d.day = p.day
GROUP BY series, p.part, d.broker, d.key, d.user_name, d.client_id
