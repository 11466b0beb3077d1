-- The classes that an inventory has clients of, each with a client that stands for all of them.
--
-- In:  classified  the rows of client_classes.sql
-- Out: class_user, class_id, user_name, client_id
SELECT class_user, class_id, MIN(user_name) AS user_name, MIN(client_id) AS client_id
FROM classified
GROUP BY class_user, class_id
