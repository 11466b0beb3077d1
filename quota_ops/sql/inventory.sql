-- The clients of an inventory, with the names that brokers use.
--
-- In:  lines  the columns of INVENTORY as in the files; null where the file lacks them
-- Out: inventory, the columns of INVENTORY
SELECT
  COALESCE(NULLIF(user_name, ''), 'ANONYMOUS') AS user_name,
  COALESCE(client_id, '') AS client_id,
  NULLIF(owner, '') AS owner,
  {rates}
FROM lines
