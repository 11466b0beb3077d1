-- How limits would have delayed the clients that share them, by a queue on each broker.
--
-- In:  rates, scrapes  as in usage_digest.sql
--      shares          shared_by, key, user_name, client_id, rate_limit, present_limit: the series
--                      of those who share a limit; `present_limit` is null if there is none
-- Out: the columns of DELAYS in quota_ops/model/usage/digest.py
--
-- A limit delays load and does not remove it. What waits after a sample is the backlog
-- b = max(0, b + (rate - limit) * seconds): the sum of these terms, less the lowest sum so far. In
-- time that was not seen nothing is sent and nothing comes, because nothing shows either.
--
-- A rate is a mean over the 11 seconds of Kafka's window, so a short burst shows as 11 s above the
-- limit, or as a whole step. Brokers mute for (rate - limit) / limit of the window, so the least
-- throttling is that part of the time, or the time above the limit less 11 s or a step for each run
-- of it: the longer of the two, and no longer than the time above the limit.
--
-- Time before the first sample of those who share a limit does not count as seen: they were idle
-- then, or brokers counted them by other names. Neither does time in which a sample of them is no
-- number.
WITH intervals AS (
  SELECT
    broker, time, up,
    LEAST({step} * 1000, COALESCE(
      unix_millis(LEAD(time) OVER (PARTITION BY broker ORDER BY time)) - unix_millis(time),
      {step} * 1000
    )) / 1000.0 AS seconds
  FROM scrapes
),

seen AS (
  SELECT broker, time, seconds FROM intervals WHERE up
),

limits AS (
  SELECT DISTINCT shared_by, rate_limit, present_limit FROM shares
),

used AS (
  SELECT
    s.shared_by, r.broker, r.time, SUM(r.value) AS rate,
    BOOL_AND(ABS(r.value) < CAST('Infinity' AS DOUBLE)) AS is_number  -- NaN is above it
  FROM rates AS r
  INNER JOIN shares AS s
    ON
      r.key = s.key
      AND r.user_name IS NOT DISTINCT FROM s.user_name
      AND r.client_id IS NOT DISTINCT FROM s.client_id
  GROUP BY s.shared_by, r.broker, r.time
),

known AS (
  SELECT u.shared_by, MIN(u.time) AS since
  FROM used AS u
  INNER JOIN seen AS s ON u.broker = s.broker AND u.time = s.time
  WHERE u.is_number
  GROUP BY u.shared_by
),

sums AS (
  SELECT
    l.shared_by, l.rate_limit, l.present_limit, s.broker, s.time, s.seconds,
    COALESCE(u.rate, 0.0) AS rate,
    SUM((COALESCE(u.rate, 0.0) - l.rate_limit) * s.seconds) OVER (
      PARTITION BY l.shared_by, s.broker ORDER BY s.time
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS total,
    (unix_millis(s.time) - unix_millis(k.since)) / 1000.0 AS start
  FROM limits AS l
  INNER JOIN known AS k ON l.shared_by = k.shared_by
  INNER JOIN seen AS s ON k.since <= s.time
  LEFT JOIN used AS u ON l.shared_by = u.shared_by AND s.broker = u.broker AND s.time = u.time
  WHERE COALESCE(u.is_number, TRUE)
),

backlogs AS (
  SELECT
    sums.*,
    start + seconds AS until,
    -- Scrapes may be late by a hundredth of the step without a gap.
    start - LAG(start + seconds) OVER (PARTITION BY shared_by, broker ORDER BY time)
      <= {step} / 100.0 AS continues,
    LEAD(start) OVER (PARTITION BY shared_by, broker ORDER BY time) - (start + seconds)
      <= {step} / 100.0 AS is_continued,
    CASE WHEN rate > rate_limit THEN seconds ELSE 0.0 END AS above,
    LAG(rate > rate_limit) OVER (PARTITION BY shared_by, broker ORDER BY time) AS was_above,
    total - LEAST(0.0, MIN(total) OVER (
      PARTITION BY shared_by, broker ORDER BY time
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    )) AS backlog
  FROM sums
)

SELECT
  shared_by, broker,
  LIST(
    -- Brokers are not scraped at the same second.
    CASE WHEN continues IS NULL AND start < {step} THEN 0 ELSE CAST(ROUND(start) AS INT) END
    ORDER BY time
  ) FILTER (WHERE continues IS NOT TRUE) AS starts,
  LIST(CAST(ROUND(until) AS INT) ORDER BY time) FILTER (WHERE is_continued IS NOT TRUE) AS ends,
  CAST(LEAST(
    SUM(above),
    GREATEST(
      SUM(above) - GREATEST({step}, 11) * SUM(
        CASE WHEN above > 0 AND (was_above AND continues) IS NOT TRUE THEN 1 ELSE 0 END
      ),
      SUM((rate - rate_limit) * above) / MAX(rate_limit)
    )
  ) AS DOUBLE) AS least,
  CAST(SUM(CASE WHEN backlog > 0 THEN seconds ELSE 0 END) AS DOUBLE) AS delayed,
  MAX(backlog) / MAX(rate_limit) AS longest,
  CAST(SUM(CASE WHEN rate >= 0.97 * present_limit THEN seconds ELSE 0 END) AS DOUBLE) AS at_present,
  MAX(rate) AS highest
FROM backlogs
GROUP BY shared_by, broker
