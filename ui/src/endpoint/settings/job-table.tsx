/** Queued requests, and what became of them. */
import { Link } from 'wouter-preact';
import { Ago, Badge, type Tone } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { Job } from '../../generated/routes.js';

const TONES: Readonly<Record<Job['state'], Tone>> = {
  ...{ queued: 'idle', running: 'warn', succeeded: 'ok', failed: 'bad' },
};

export function JobTable({ jobs }: { readonly jobs: readonly Job[] }) {
  return (
    <div class="scroll-x">
      <table>
        <thead>
          <tr>
            <th scope="col">State</th>
            <th scope="col">Request</th>
            <th scope="col">Attempts</th>
            <th scope="col">Last answer</th>
            <th scope="col">Queued</th>
            <th scope="col">Log</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <td>
                <Badge tone={TONES[job.state]}>{job.state}</Badge>
              </td>
              <td>
                <code>
                  {job.method} <Visible text={job.path} isOneLine />
                </code>
              </td>
              <td class="number">
                {job.attempts} of {job.max_attempts}
              </td>
              <td>
                <Outcome job={job} />
              </td>
              <td>
                <Ago at={job.planned_at ?? job.created_at} />
              </td>
              <td>
                <Link
                  href={`/ui/endpoints/${job.endpoint_id}/logs?request_id=${encodeURIComponent(job.request_id)}`}
                >
                  Its lines
                </Link>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Outcome({
  job: { last_status: status, last_error: error, next_attempt_at: next, state },
}: {
  readonly job: Job;
}) {
  return (
    <>
      {status}
      {error !== null && (
        <span>
          {' '}
          <Visible text={error} isOneLine />
        </span>
      )}
      {state === 'queued' && next !== null && (
        <span class="small muted">
          {' '}
          next attempt <Ago at={next} />
        </span>
      )}
    </>
  );
}
