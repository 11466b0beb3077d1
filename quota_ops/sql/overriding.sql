-- The differences, in which an unmanaged row that takes clients from declared ones is overriding.
--
-- In:  differences, overrides
-- Out: differences
SELECT
  {columns},
  CASE WHEN o.entity IS NULL THEN d.kind ELSE 'overriding' END AS kind
FROM differences AS d
LEFT JOIN (SELECT DISTINCT cluster, entity, key FROM overrides) AS o
  ON d.cluster = o.cluster AND d.entity = o.entity AND d.key = o.key
ORDER BY d.cluster, d.entity, d.key
