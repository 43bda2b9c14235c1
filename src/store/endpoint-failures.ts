/** What went wrong in requests of an endpoint, as its log has it. */

/** An error in the log. */
export interface LastFailure {
  /** ISO 8601. */
  readonly at: string;
  readonly message: string;
  /** The place of a panic: file, line and column; null: it is none. */
  readonly place: string | null;
  readonly version: number | null;
  readonly request_id: string;
}

/**
 * SQL: entries of requests with an error since a time: errors, and calls of services that have failed, which are
 * warnings. What the gateway refused without a version, such as requests while nothing serves, is no failure of one.
 */
const failures = (columns: string, since: string, last = '') => {
  const isOfRequest = `logs.endpoint_id = endpoints.id AND at > now() - interval '${since}'
       AND request_id IS NOT NULL AND version IS NOT NULL`;
  const isFailedCall = `level = 40 AND fields->>'target' = 'service' AND fields->>'error' IS NOT NULL`;
  return `(SELECT ${columns} FROM logs WHERE ${isOfRequest} AND level >= 50 ${last}) UNION ALL
          (SELECT ${columns} FROM logs WHERE ${isOfRequest} AND ${isFailedCall} ${last})`;
};

/** SQL: how many requests of the last hour, as a column. */
export const RECENT_ERRORS = `(
  SELECT count(*)::integer FROM (
    SELECT FROM (${failures('request_id', '1 hour')}) AS entries GROUP BY request_id LIMIT 1000) AS failed)
  AS recent_errors`;

const MESSAGE = `CASE WHEN fields->>'target' = 'service' AND level = 40
  THEN concat('The call ', fields->>'operation', ' of the pool "', fields->>'pool', '" has failed: ', fields->>'error')
  ELSE message END AS message`;

/**
 * SQL: the newest of the last day, as a column. What the handler said tells more than what became of its request, which
 * is the newer entry.
 */
export const LAST_FAILURE = `(
  SELECT jsonb_build_object('at', at, 'message', coalesce(nullif(newest.message, ''), 'answered ' || status),
                            'place', fields->>'place', 'version', newest.version, 'request_id', request_id)
    FROM (SELECT * FROM (${failures(
      `at, ${MESSAGE}, status, fields, version, request_id`,
      '1 day',
      'ORDER BY at DESC LIMIT 10',
    )}) AS entries ORDER BY at DESC LIMIT 10) AS newest
   ORDER BY newest.message = '', at DESC LIMIT 1) AS last_failure`;
