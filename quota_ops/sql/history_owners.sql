-- How many quotas of each owner and key were seen drifted, or overriding Git, on each day (UTC) of
-- each cluster.
--
-- In:  ends
-- Out: owners
SELECT
  cluster, SUBSTR(ended, 1, 10) AS date, owner, key, CAST(COUNT(DISTINCT entity) AS INT) AS drifted
FROM ends
WHERE entity IS NOT NULL AND mode IN ('look', 'apply')
  AND kind IN ({kinds})
GROUP BY cluster, SUBSTR(ended, 1, 10), owner, key
ORDER BY cluster, date, owner NULLS FIRST, key
