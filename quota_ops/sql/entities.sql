-- The declared rows and the others that stay on the cluster, with the parts of their entities.
--
-- In:  desired, differences, spellings
-- Out: entities: only for keys that a row which is not declared has, without most rows of users that
--      no such row has. `side` is declared, protected, unmanaged (also if the policy protects it and
--      was not applied yet), leaving (a plan clears it; other spellings of declared addresses are
--      unmanaged, because no plan clears them: see batches.sql), or other (held or only reported).
--      user_name, client_id and address are parts such as user=alice, which are all null if the
--      entity has a type that Kafka does not have.
WITH respelled AS (
  SELECT d.cluster, s.entity, d.key
  FROM spellings AS s
  INNER JOIN desired AS d ON s.respelled = d.entity
  UNION
  SELECT d.cluster, s.entity, d.key
  FROM spellings AS s
  CROSS JOIN desired AS d
  WHERE s.respelled IS NULL AND d.entity LIKE 'ip=%' AND d.entity <> 'ip=<default>'
),

others AS (
  SELECT
    d.cluster, d.entity, d.key, d.before AS value, d.held,
    CASE
      WHEN d.action = 'clear' AND r.entity IS NULL THEN 'leaving'
      WHEN d.hands_off = 'protected' THEN 'protected'
      WHEN d.kind <> 'not_judged' AND COALESCE(d.hands_off, 'newly protected') = 'newly protected'
        THEN 'unmanaged'
      ELSE 'other'
    END AS side
  FROM differences AS d
  LEFT JOIN respelled AS r ON d.cluster = r.cluster AND d.entity = r.entity AND d.key = r.key
  WHERE
    d.after IS NULL AND d.before IS NOT NULL AND d.action IN ('report', 'held', 'clear')
),

examined AS (
  SELECT
    cluster, key,
    MAX(CASE WHEN side <> 'other' THEN 1 ELSE 0 END) AS is_met,
    MAX(POSITION('"' IN entity)) AS has_quotes
  FROM others
  GROUP BY cluster, key
),

-- A row of a single user matters only to rows of this user that are not declared. In a text without quotes, the
-- user is the last part.
users AS (
  SELECT DISTINCT cluster, key, SUBSTR(entity, POSITION('user=' IN entity)) AS user_name
  FROM others
  WHERE POSITION('user=' IN entity) > 0
),

stored AS (
  SELECT
    d.cluster, d.entity, d.key, d.value, 'declared' AS side, CAST(NULL AS STRING) AS held,
    d.owner, d.file, d.line
  FROM desired AS d
  INNER JOIN examined AS e ON d.cluster = e.cluster AND d.key = e.key AND e.is_met = 1
  LEFT JOIN users AS u
    ON
      d.cluster = u.cluster AND d.key = u.key
      AND u.user_name = SUBSTR(d.entity, POSITION('user=' IN d.entity))
  WHERE
    u.user_name IS NOT NULL
    OR POSITION('user=' IN d.entity) = 0
    OR d.entity LIKE '%user=<default>'
    OR e.has_quotes + POSITION('"' IN d.entity) > 0
  UNION ALL
  SELECT
    o.cluster, o.entity, o.key, o.value, o.side, o.held,
    CAST(NULL AS STRING) AS owner, CAST(NULL AS STRING) AS file, CAST(NULL AS INT) AS line
  FROM others AS o
  INNER JOIN examined AS e ON o.cluster = e.cluster AND o.key = e.key AND e.is_met = 1
),

-- Quotes in names are escaped with a backslash, CHR(92), which is itself escaped.
masked AS (
  SELECT
    stored.*,
    REPLACE(REPLACE(entity, CHR(92) || CHR(92), '__'), CHR(92) || '"', '__') AS mask
  FROM stored
),

measured AS (
  SELECT
    masked.*,
    CASE
      WHEN SUBSTR(mask, POSITION('=' IN mask) + 1, 1) = '"' THEN
        POSITION('=' IN mask) + 1
        + POSITION('"' IN SUBSTR(mask, POSITION('=' IN mask) + 2))
      WHEN POSITION(',' IN mask) > 0 THEN POSITION(',' IN mask) - 1
      ELSE LENGTH(mask)
    END AS width
  FROM masked
),

split AS (
  SELECT
    measured.*,
    SUBSTR(entity, 1, CAST(width AS INT)) AS part,
    SUBSTR(entity, CAST(width AS INT) + 1) AS rest
  FROM measured
)

SELECT
  split.*,
  CASE
    WHEN part LIKE 'user=%' AND rest = '' THEN part
    WHEN part LIKE 'client-id=%' AND rest LIKE ',user=%' THEN SUBSTR(rest, 2)
  END AS user_name,
  CASE WHEN part LIKE 'client-id=%' AND (rest = '' OR rest LIKE ',user=%') THEN part END AS client_id,
  CASE WHEN part LIKE 'ip=%' AND rest = '' THEN part END AS address
FROM split
