-- The digest of a day from those of parts of its samples, each with all scrapes of their brokers.
--
-- In:  digests  the columns of DIGEST in quota_ops/model/usage/digest.py, of one day
-- Out: the same columns
WITH sums AS (
  SELECT
    day, broker, key, user_name, client_id, bucket,
    CASE
      WHEN user_name IS NULL AND client_id IS NULL THEN MAX(seconds)
      ELSE SUM(seconds)
    END AS seconds,
    MAX(highest) AS highest,
    BOOL_OR(throttled) AS throttled
  FROM digests
  GROUP BY day, broker, key, user_name, client_id, bucket
)

SELECT
  day, broker, key, user_name, client_id, bucket,
  CAST(seconds AS INT) AS seconds,
  CASE
    WHEN bucket = MAX(bucket) OVER (PARTITION BY broker, key, user_name, client_id) THEN highest
  END AS highest,
  throttled
FROM sums
