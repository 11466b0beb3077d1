-- The number of lines of an inventory that are not valid, and one client that has several lines.
--
-- In:  lines, inventory  see inventory.sql
-- Out: one row: wrong, user_name, client_id; the names are null if each client has one line
WITH rates AS (
  SELECT
    bit_length(user_name) > {bits} OR bit_length(client_id) > {bits} AS is_long,
    user_name LIKE 'User:%' OR TRIM(user_name) <> user_name AS is_no_name,
    {rates} AS are_rates
  FROM lines
),

wrong AS (
  SELECT COUNT(*) AS wrong
  FROM rates
  WHERE COALESCE(is_long, FALSE) OR COALESCE(is_no_name, FALSE) OR NOT are_rates
),

repeated AS (
  SELECT user_name, client_id
  FROM inventory
  GROUP BY user_name, client_id
  HAVING COUNT(*) > 1
  ORDER BY user_name, client_id
  LIMIT 1
)

SELECT w.wrong, r.user_name, r.client_id
FROM wrong AS w
LEFT JOIN repeated AS r ON TRUE
