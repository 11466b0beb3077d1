-- The class of each client in an inventory: clients of one class have the same limits.
--
-- In:  inventory                    user_name, client_id, owner and the keys: see INVENTORY
--      limits_before, limits_after  as `limits` in resolve.sql
-- Out: the columns of the inventory; class_user and class_id, which are null for every name that has
--      no limit of its own on either side
WITH users AS (
  SELECT user_name FROM limits_before WHERE user_name IS NOT NULL
  UNION
  SELECT user_name FROM limits_after WHERE user_name IS NOT NULL
),

client_ids AS (
  SELECT client_id FROM limits_before WHERE client_id <> ''
  UNION
  SELECT client_id FROM limits_after WHERE client_id <> ''
)

SELECT /*+ BROADCAST(u, c) */
  i.*,
  u.user_name AS class_user,
  CASE WHEN i.client_id = '' THEN '' ELSE c.client_id END AS class_id
FROM inventory AS i
LEFT JOIN users AS u ON i.user_name = u.user_name
LEFT JOIN client_ids AS c ON i.client_id = c.client_id
