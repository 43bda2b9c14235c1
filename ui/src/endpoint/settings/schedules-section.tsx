/** Requests that are sent to the endpoint again and again. */
import { call } from '../../api/client.js';
import { invalidate, useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { ask, openDialog } from '../../base/ask.js';
import { Button } from '../../base/controls.js';
import { Dialog } from '../../base/dialog.js';
import { Empty, Loaded } from '../../base/notices.js';
import { Ago, At, Badge, count } from '../../base/text.js';
import { useInterval } from '../../base/use-interval.js';
import { Visible } from '../../base/visible.js';
import type { Endpoint, Schedule } from '../../generated/routes.js';
import { Section } from '../../settings/section.js';
import { JobTable } from './job-table.js';
import { REFRESH_MS } from './jobs-section.js';
import { ScheduleDialog } from './schedule-dialog.js';

export function SchedulesSection({ endpoint }: { readonly endpoint: Endpoint }) {
  const mayRead = may('jobs:read');
  const mayEdit = may('jobs:write');
  const result = useQuery(
    'GET /api/endpoints/{id}/schedules',
    mayRead ? { params: { id: endpoint.id } } : undefined,
  );
  // It runs at any time: nothing announces when it will the next time.
  useInterval(REFRESH_MS, result.refresh);
  const edit = (schedule?: Schedule) =>
    openDialog((close) => <ScheduleDialog endpoint={endpoint} schedule={schedule} onClose={close} />);
  if (!mayRead) return <Empty title="You may not see schedules" />;
  return (
    <Section
      title="Schedules"
      hint="Each run is a request that is queued and sent to the handler, up to five times until it succeeds."
      actions={mayEdit && <Button onClick={() => edit()}>Add a schedule</Button>}
    >
      <Loaded result={result}>
        {(schedules) =>
          schedules.length === 0 ? (
            <p class="muted">There are none.</p>
          ) : (
            <ul class="entries">
              {schedules.map((schedule) => (
                <OneSchedule key={schedule.id} schedule={schedule} mayEdit={mayEdit} onEdit={edit} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Section>
  );
}

interface OneScheduleProps {
  readonly schedule: Schedule;
  readonly mayEdit: boolean;
  readonly onEdit: (schedule: Schedule) => void;
}

function OneSchedule({ schedule, mayEdit, onEdit }: OneScheduleProps) {
  const { cron, timezone, method, path, enabled, next_run_at: next, missed_runs: missed } = schedule;
  return (
    <li>
      <div>
        <code>{cron}</code> <span class="muted">{timezone}</span>{' '}
        {enabled ? <Badge tone="ok">On</Badge> : <Badge tone="idle">Off</Badge>}
        <div class="small">
          <code>
            {method} <Visible text={path} isOneLine />
          </code>
        </div>
        <div class="small muted">
          {next === null ? (
            'No next run'
          ) : (
            <>
              Next run <Ago at={next} />, <At at={next} />
            </>
          )}
          {missed > 0 && `; ${count(missed)} missed`}
        </div>
      </div>
      <span class="actions">
        <Button
          isSmall
          label={`Runs of ${cron}`}
          onClick={() => openDialog((close) => <Runs schedule={schedule} onClose={close} />)}
        >
          Runs
        </Button>
        {mayEdit && (
          <>
            <Button isSmall label={`Edit ${cron}`} onClick={() => onEdit(schedule)}>
              Edit
            </Button>
            <Button isSmall look="plain" label={`Delete ${cron}`} onClick={() => askToDelete(schedule)}>
              Delete
            </Button>
          </>
        )}
      </span>
    </li>
  );
}

function askToDelete({ id, endpoint_id, cron, timezone }: Schedule): void {
  ask({
    title: 'Delete the schedule',
    action: 'Delete',
    isDangerous: true,
    text: (
      <p>
        <code>{cron}</code> ({timezone}) runs no more. Runs that have begun are finished.
      </p>
    ),
    async run() {
      const params = { id: endpoint_id, schedule_id: id };
      await call('DELETE /api/endpoints/{id}/schedules/{schedule_id}', { params });
      invalidate(`/api/endpoints/${endpoint_id}/schedules`);
    },
  });
}

function Runs({ schedule, onClose }: { readonly schedule: Schedule; readonly onClose: () => void }) {
  const params = { id: schedule.endpoint_id, schedule_id: schedule.id };
  const route = 'GET /api/endpoints/{id}/schedules/{schedule_id}/runs';
  const result = useQuery(route, { params }, { isUnannounced: true });
  useInterval(REFRESH_MS, result.refresh);
  return (
    <Dialog title={`Runs of ${schedule.cron}`} isWide onClose={onClose}>
      <Loaded result={result}>
        {(runs) => (runs.length === 0 ? <p class="muted">It has not run yet.</p> : <JobTable jobs={runs} />)}
      </Loaded>
      <footer>
        <Button onClick={onClose}>Close</Button>
      </footer>
    </Dialog>
  );
}
