-- What clients used in each part of some days, from the digests of the days.
--
-- In:  digests  the columns of DIGEST in quota_ops/model/usage/digest.py
--      parts    day, part: the days to read, and the number of a part
-- Out: series, part, bucket, seconds: `series` is the hash of the names, because sums by names would
--      need four times the memory
SELECT
  HASH(d.broker, d.key, d.user_name, d.client_id) AS series, p.part, d.bucket,
  CAST(SUM(d.seconds) AS INT) AS seconds
FROM digests AS d
INNER JOIN parts AS p ON d.day = p.day
GROUP BY series, p.part, d.bucket
