-- The rows of each end of a run, once: the last revision of an end replaces the earlier ones.
--
-- In:  history
-- Out: ends, with the columns of HISTORY
SELECT history.*
FROM history
JOIN (
  SELECT cluster AS of_cluster, run AS of_run, ended AS of_end, MAX(revision) AS last_revision
  FROM history
  WHERE entity IS NULL
  GROUP BY cluster, run, ended
) AS last
  ON cluster = of_cluster AND run = of_run AND ended = of_end AND revision = last_revision
