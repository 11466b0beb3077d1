-- What clients used of a key in each part of some days, from the digests of the days.
--
-- In:  digests  the columns of DIGEST in quota_ops/model/usage/digest.py
--      parts    day, part: the days to read, and the number of a part
-- Out: series, bucket, seconds: `series` is the hash of the names and the part, because sums by names
--      would need four times the memory
WITH days AS (
  SELECT
    HASH(d.broker, d.key, d.user_name, d.client_id, p.part) AS series, d.bucket, d.seconds
  FROM digests AS d
  INNER JOIN parts AS p ON d.day = p.day
  WHERE d.key = '{key}' AND d.bucket IS NOT NULL
),

buckets AS (
  SELECT
    series, bucket + CAST(UNNEST(RANGE(LEN(seconds))) AS INT) AS bucket,
    UNNEST(seconds) AS seconds
  FROM days
)

SELECT series, bucket, CAST(SUM(seconds) AS INT) AS seconds
FROM buckets
GROUP BY series, bucket
