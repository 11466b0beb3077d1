-- The rows of entities, each with its level: see overrides.sql.
--
-- In:  entities
-- Out: levels: `kept` is the entity of a declared, protected or other row; `shared` is who shares the limit.
--      `rank` is 1 for a leaving row and 2 for any other: a leaving row takes clients until it is
--      cleared, and an unmanaged one afterwards, so a row is judged among those of its rank or higher.
--      Rows of entity types that Kafka does not have are left out: how a broker looks them up is not
--      known. This is a view of its own because Spark expands the texts of a filter without end.
-- The rank of the level; 9 and 10 for addresses. No limit of an empty client id ever applies.
WITH ranked AS (
  SELECT
    cluster, key, entity, value, side, held, owner, file, line, user_name, client_id,
    CASE
      WHEN address = 'ip=<default>' THEN 10
      WHEN address IS NOT NULL THEN 9
      WHEN client_id IS NULL THEN CASE WHEN user_name = 'user=<default>' THEN 6 ELSE 3 END
      WHEN user_name IS NULL THEN CASE WHEN client_id = 'client-id=<default>' THEN 8 ELSE 7 END
      WHEN user_name = 'user=<default>' THEN
        CASE WHEN client_id = 'client-id=<default>' THEN 5 ELSE 4 END
      WHEN client_id = 'client-id=<default>' THEN 2
      ELSE 1
    END AS level
  FROM entities
  WHERE
    COALESCE(user_name, client_id, address) IS NOT NULL
    AND COALESCE(client_id, '') <> 'client-id=""'
)

-- Who shares a limit follows from the types of its entity.
SELECT
  ranked.*,
  CASE WHEN side IN ('declared', 'protected', 'other') THEN entity END AS kept,
  CASE WHEN side = 'leaving' THEN 1 ELSE 2 END AS rank,
  CASE WHEN level IN (3, 6) THEN 'user' WHEN level IN (7, 8) THEN 'client-id' ELSE 'both' END AS shared
FROM ranked
