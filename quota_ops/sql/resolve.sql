-- The limit that applies to each client and key: the broker's eight levels, found by four joins.
--
-- In:  clients     user_name, client_id; empty or null when the client sends none
--      quota_keys  key
--      limits      key, rank, user_name, client_id, entity, value: every stored limit with the rank of its level
-- Out: one row per client and key: the limit that applies, null if unlimited, and whose it is. Clients
--      with the same `shared_by` columns share the limit; an empty one means any name
--
-- The first level with a limit applies. No limit for client ids applies to a client without a client
-- id. If such a limit is at the first level, it still decides whether the broker counts by user, by
-- client id or by both.
WITH requested AS (
  SELECT
    COALESCE(NULLIF(c.user_name, ''), 'ANONYMOUS') AS user_name,
    COALESCE(c.client_id, '') AS client_id,
    k.key
  FROM clients AS c
  CROSS JOIN quota_keys AS k
),

of_pair AS (
  SELECT key, user_name, client_id, value AS value_1, entity AS entity_1
  FROM limits
  WHERE rank = 1
),

of_user AS (
  SELECT
    key, user_name,
    MAX(CASE WHEN rank = 2 THEN value END) AS value_2,
    MAX(CASE WHEN rank = 2 THEN entity END) AS entity_2,
    MAX(CASE WHEN rank = 3 THEN value END) AS value_3,
    MAX(CASE WHEN rank = 3 THEN entity END) AS entity_3
  FROM limits
  WHERE rank IN (2, 3)
  GROUP BY key, user_name
),

of_client AS (
  SELECT
    key, client_id,
    MAX(CASE WHEN rank = 4 THEN value END) AS value_4,
    MAX(CASE WHEN rank = 4 THEN entity END) AS entity_4,
    MAX(CASE WHEN rank = 7 THEN value END) AS value_7,
    MAX(CASE WHEN rank = 7 THEN entity END) AS entity_7
  FROM limits
  WHERE rank IN (4, 7)
  GROUP BY key, client_id
),

of_anyone AS (
  SELECT
    key,
    MAX(CASE WHEN rank = 5 THEN value END) AS value_5,
    MAX(CASE WHEN rank = 5 THEN entity END) AS entity_5,
    MAX(CASE WHEN rank = 6 THEN value END) AS value_6,
    MAX(CASE WHEN rank = 6 THEN entity END) AS entity_6,
    MAX(CASE WHEN rank = 8 THEN value END) AS value_8,
    MAX(CASE WHEN rank = 8 THEN entity END) AS entity_8,
    MAX(CASE WHEN rank IN (1, 2, 4, 5) THEN 1 ELSE 0 END) AS has_pairs,
    MAX(CASE WHEN rank IN (3, 6) THEN 1 ELSE 0 END) AS has_users,
    MAX(CASE WHEN rank IN (7, 8) THEN 1 ELSE 0 END) AS has_clients
  FROM limits
  GROUP BY key
),

levels AS (
  SELECT
    a.user_name, a.client_id, a.key,
    p.value_1, p.entity_1, u.value_2, u.entity_2, u.value_3, u.entity_3, c.value_4, c.entity_4,
    o.value_5, o.entity_5, o.value_6, o.entity_6, c.value_7, c.entity_7, o.value_8, o.entity_8,
    CASE
      WHEN p.entity_1 IS NOT NULL THEN 1
      WHEN u.entity_2 IS NOT NULL THEN 2
      WHEN u.entity_3 IS NOT NULL THEN 3
      WHEN c.entity_4 IS NOT NULL THEN 4
      WHEN o.entity_5 IS NOT NULL THEN 5
      WHEN o.entity_6 IS NOT NULL THEN 6
      WHEN c.entity_7 IS NOT NULL THEN 7
      WHEN o.entity_8 IS NOT NULL THEN 8
    END AS first_rank,
    CASE
      WHEN a.client_id = '' AND u.entity_3 IS NOT NULL THEN 3
      WHEN a.client_id = '' AND o.entity_6 IS NOT NULL THEN 6
    END AS without_client_id,
    COALESCE(o.has_pairs, 0) AS has_pairs,
    COALESCE(o.has_users, 0) AS has_users,
    COALESCE(o.has_clients, 0) AS has_clients
  FROM requested AS a
  LEFT JOIN of_pair AS p
    ON a.key = p.key AND a.user_name = p.user_name AND a.client_id = p.client_id
  LEFT JOIN of_user AS u ON a.key = u.key AND a.user_name = u.user_name
  LEFT JOIN of_client AS c ON a.key = c.key AND a.client_id = c.client_id
  LEFT JOIN of_anyone AS o ON a.key = o.key
),

ranked AS (
  SELECT
    levels.*,
    CASE WHEN client_id = '' THEN without_client_id ELSE first_rank END AS applied,
    CASE
      WHEN has_pairs + has_users + has_clients = 1 AND has_users = 1 THEN 'user'
      WHEN has_pairs + has_users + has_clients = 1 AND has_pairs = 1 THEN 'both'
      WHEN has_pairs + has_users + has_clients < 2 THEN 'client-id'
      WHEN first_rank IN (3, 6) THEN 'user'
      WHEN first_rank IN (1, 2, 4, 5) THEN 'both'
      ELSE 'client-id'
    END AS counted_by
  FROM levels
)

SELECT
  user_name, client_id, key,
  CASE applied
    WHEN 1 THEN value_1 WHEN 2 THEN value_2 WHEN 3 THEN value_3 WHEN 4 THEN value_4
    WHEN 5 THEN value_5 WHEN 6 THEN value_6 WHEN 7 THEN value_7 WHEN 8 THEN value_8
  END AS value,
  CASE applied
    WHEN 1 THEN 'user+client-id' WHEN 2 THEN 'user+client-id-default' WHEN 3 THEN 'user'
    WHEN 4 THEN 'user-default+client-id' WHEN 5 THEN 'user-default+client-id-default'
    WHEN 6 THEN 'user-default' WHEN 7 THEN 'client-id' WHEN 8 THEN 'client-id-default'
  END AS level,
  applied AS rank,
  CASE applied
    WHEN 1 THEN entity_1 WHEN 2 THEN entity_2 WHEN 3 THEN entity_3 WHEN 4 THEN entity_4
    WHEN 5 THEN entity_5 WHEN 6 THEN entity_6 WHEN 7 THEN entity_7 WHEN 8 THEN entity_8
  END AS entity,
  CASE WHEN counted_by = 'client-id' THEN '' ELSE user_name END AS shared_by_user,
  CASE WHEN counted_by = 'user' THEN '' ELSE client_id END AS shared_by_client_id
FROM ranked
