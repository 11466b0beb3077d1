-- Resolved limits for a spreadsheet, which would run a cell such as =cmd(): a name that begins like
-- a formula (tab, carriage return, + - = @) gets an apostrophe in front.
--
-- In:  the text of resolve.sql
-- Out: the same columns
SELECT
  CASE WHEN ASCII(user_name) IN (9, 13, 43, 45, 61, 64) THEN CONCAT('''', user_name) ELSE user_name END AS user_name,
  CASE WHEN ASCII(client_id) IN (9, 13, 43, 45, 61, 64) THEN CONCAT('''', client_id) ELSE client_id END AS client_id,
  key,
  value,
  level,
  rank,
  CASE WHEN ASCII(entity) IN (9, 13, 43, 45, 61, 64) THEN CONCAT('''', entity) ELSE entity END AS entity,
  CASE WHEN ASCII(shared_by_user) IN (9, 13, 43, 45, 61, 64) THEN CONCAT('''', shared_by_user) ELSE shared_by_user END AS shared_by_user,
  CASE WHEN ASCII(shared_by_client_id) IN (9, 13, 43, 45, 61, 64) THEN CONCAT('''', shared_by_client_id) ELSE shared_by_client_id END AS shared_by_client_id
FROM (
{resolved}
)
