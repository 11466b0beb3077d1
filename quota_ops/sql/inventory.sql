-- The clients of an inventory, with the names that brokers use.
--
-- In:  lines  the columns of INVENTORY as in the files; null where the file lacks them
-- Out: inventory, the columns of INVENTORY
SELECT
  COALESCE(NULLIF(user_name, ''), 'ANONYMOUS') AS user_name,
  COALESCE(client_id, '') AS client_id,
  NULLIF(owner, '') AS owner,
  TRY_CAST(producer_byte_rate AS DOUBLE) AS producer_byte_rate,
  TRY_CAST(consumer_byte_rate AS DOUBLE) AS consumer_byte_rate,
  TRY_CAST(request_percentage AS DOUBLE) AS request_percentage,
  TRY_CAST(controller_mutation_rate AS DOUBLE) AS controller_mutation_rate
FROM lines
