-- The buckets of a day from those of parts of its samples.
--
-- In:  parts  the columns of BUCKETS in quota_ops/model/usage/digest.py, of one day
-- Out: the same columns
SELECT
  day, broker, key, user_name, client_id, bucket,
  CAST(SUM(seconds) AS INT) AS seconds,
  MAX(highest) AS highest,
  BOOL_OR(throttled) AS throttled
FROM parts
GROUP BY day, broker, key, user_name, client_id, bucket
