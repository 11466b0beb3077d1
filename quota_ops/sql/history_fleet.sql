-- How many runs found each quota drifted, or overriding Git, and when first and last.
--
-- In:  ends
-- Out: the columns of QUOTA_DRIFTS
SELECT
  cluster, entity, key, ARG_MAX(owner, ended) AS owner, CAST(COUNT(*) AS INT) AS times_seen,
  MIN(ended) AS first_seen, MAX(ended) AS last_seen
FROM ends
WHERE entity IS NOT NULL AND mode IN ('look', 'apply')
  AND kind IN ({kinds})
GROUP BY cluster, entity, key
ORDER BY cluster, entity, key
