-- The rows of HISTORY that the newest changes of a cluster need.
--
-- In:  every_history, with the parameters cluster_id, since, sent (outcomes), unsent (modes) and most
-- Out: the rows of all quotas that the `most` newest changes concern: the owner of a change may be
--      in an earlier row. And the ends of runs with an approved policy. Several changes of one second are sorted as a report lists them.
WITH own AS (
  SELECT *
  FROM every_history
  WHERE cluster_id = $cluster_id AND ended >= $since
  QUALIFY revision = MAX(revision) OVER (PARTITION BY run, ended)
),

newest AS (
  SELECT entity
  FROM own
  WHERE key IS NOT NULL AND (outcome IN $sent OR mode IN $unsent)
  GROUP BY run, entity, key
  ORDER BY MIN(ended) DESC, MAX(COALESCE(sequence, 0)) DESC, entity DESC, key DESC
  LIMIT $most
)

SELECT *
FROM own
WHERE entity IN (SELECT entity FROM newest) OR policy IS NOT NULL
