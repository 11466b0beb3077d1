-- The buckets of a day from those of parts of its samples, each with all scrapes of their brokers.
--
-- In:  parts  the columns of BUCKETS in quota_ops/model/usage/digest.py, of one day
-- Out: the same columns
SELECT
  day, broker, key, user_name, client_id, bucket,
  CAST(CASE
    WHEN user_name IS NULL AND client_id IS NULL AND bucket IS NULL THEN MAX(seconds)
    ELSE SUM(seconds)
  END AS INT) AS seconds,
  MAX(highest) AS highest,
  BOOL_OR(throttled) AS throttled
FROM parts
GROUP BY day, broker, key, user_name, client_id, bucket
