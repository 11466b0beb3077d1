-- Compare Git, the cluster and the ledger for every quota, and return what may differ.
--
-- In:  desired, actual, ledger (see quota_ops/model/quotas/tables.py)
-- Out: compared: a row for each ledger row that remembers a value of the key, or one without. A key
--      that is in sync and verified in the ledger is left out.
WITH differing AS (
  SELECT
    cluster, entity, key,
    d.value AS desired,
    a.value AS actual,
    v.value AS verified,
    d.owner, d.reason, d.file, d.line,
    d.derivation, d.until, d.returns_to, d.brokers,
    v.returns_to AS verified_returns_to,
    v.owner AS verified_owner, v.file AS verified_file, v.commit AS verified_commit,
    v.run AS verified_run, v.at AS verified_at,
    -- The number of the intents that no later run has replaced or verified, if there are any.
    CASE
      WHEN i.last_number > COALESCE(v.sequence, CASE WHEN v.state IS NULL THEN -1 ELSE 0 END)
        THEN i.last_number
    END AS current_number,
    a.in_scope,
    a.hands_off
  FROM desired AS d
  FULL OUTER JOIN actual AS a USING (cluster, entity, key)
  FULL OUTER JOIN (SELECT * FROM ledger WHERE state = 'verified') AS v USING (cluster, entity, key)
  FULL OUTER JOIN (
    SELECT cluster, entity, key, MAX(COALESCE(sequence, 0)) AS last_number
    FROM ledger
    WHERE state IN ('intended', 'altered')
    GROUP BY cluster, entity, key
  ) AS i USING (cluster, entity, key)
  WHERE
    (d.value IS NULL AND COALESCE(a.value, v.value) IS NOT NULL)
    OR d.value IS DISTINCT FROM a.value
    OR d.value IS DISTINCT FROM v.value
    OR i.last_number > COALESCE(v.sequence, CASE WHEN v.state IS NULL THEN -1 ELSE 0 END)
),

memories AS (
  SELECT *
  FROM ledger
  WHERE state IN ('cleared', 'intended', 'altered') -- a condition of its own, so Spark reads no other rows
)

SELECT
  d.*,
  r.state AS memory_state, r.value AS recalled_value, r.sequence AS recalled_sequence,
  r.returns_to AS recalled_returns_to,
  r.owner AS recalled_owner, r.file AS recalled_file, r.commit AS recalled_commit,
  r.run AS recalled_run, r.at AS recalled_at
FROM differing AS d
LEFT JOIN memories AS r ON d.cluster = r.cluster AND d.entity = r.entity AND d.key = r.key
