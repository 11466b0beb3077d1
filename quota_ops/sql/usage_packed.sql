-- The digest of a day from its buckets.
--
-- In:  buckets  the columns of BUCKETS in quota_ops/model/usage/digest.py
-- Out: the columns of DIGEST in quota_ops/model/usage/digest.py, without when brokers were seen
WITH runs AS (
  SELECT
    *,
    -- The seconds of a bucket, after a 0 for each bucket below it that has none.
    LIST_APPEND(LIST_RESIZE(
      CAST([] AS INT[]),
      COALESCE(bucket - 1 - LAG(bucket) OVER (
        PARTITION BY broker, key, user_name, client_id ORDER BY bucket NULLS FIRST
      ), 0),
      0
    ), seconds) AS run
  FROM buckets
)

SELECT
  day, broker, key, user_name, client_id,
  CAST(COALESCE(SUM(seconds) FILTER (WHERE bucket IS NULL), 0) AS INT) AS idle,
  MIN(bucket) AS bucket,
  COALESCE(FLATTEN(LIST(run ORDER BY bucket) FILTER (WHERE bucket IS NOT NULL)), []) AS seconds,
  MAX(highest) AS highest,
  BOOL_OR(throttled) AS throttled,
  CAST([] AS INT[]) AS seen
FROM runs
GROUP BY day, broker, key, user_name, client_id
