-- The digest of a day from those of parts of its samples, each with all scrapes of their brokers.
--
-- In:  digests  the columns of DIGEST in quota_ops/model/usage/digest.py, of one day
-- Out: the same columns, sorted: clients with similar numbers are beside each other, which takes 7 %
--      less space
WITH sums AS (
  SELECT
    day, broker, key, user_name, client_id, bucket,
    CASE
      WHEN user_name IS NULL AND client_id IS NULL AND bucket IS NULL THEN MAX(seconds)
      ELSE SUM(seconds)
    END AS seconds,
    MAX(highest) AS highest,
    BOOL_OR(throttled) AS throttled
  FROM digests
  GROUP BY day, broker, key, user_name, client_id, bucket
),

sorted AS (
  SELECT
    day, broker, key, user_name, client_id, bucket,
    CAST(seconds AS INT) AS seconds,
    CASE
      WHEN bucket = MAX(bucket) OVER (PARTITION BY broker, key, user_name, client_id) THEN highest
    END AS highest,
    throttled,
    MAX(seconds) OVER (PARTITION BY broker, key, user_name, client_id) AS longest
  FROM sums
)

SELECT day, broker, key, user_name, client_id, bucket, seconds, highest, throttled
FROM sorted
ORDER BY
  key, broker, longest, user_name NULLS LAST, client_id NULLS LAST, bucket NULLS LAST
