/** Adds or changes a schedule. */
import { useMemo } from 'preact/hooks';
import { call } from '../../api/client.js';
import { invalidate } from '../../api/query.js';
import { Check, Field, SelectField, TextArea, TextField } from '../../base/controls.js';
import { Dialog } from '../../base/dialog.js';
import { Form } from '../../base/form.js';
import { headerLines, headerProblem, headersOf } from '../../base/header-lines.js';
import { invalidAt } from '../../base/problems.js';
import type { Endpoint, Schedule } from '../../generated/routes.js';
import { useForm } from '../../settings/use-form.js';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

interface ScheduleDialogProps {
  readonly endpoint: Endpoint;
  /** Undefined: a new one. */
  readonly schedule: Schedule | undefined;
  readonly onClose: () => void;
}

export function ScheduleDialog({ endpoint, schedule, onClose }: ScheduleDialogProps) {
  const form = useForm(`schedule ${schedule?.id ?? `of ${endpoint.id}`}`, useSaved(endpoint, schedule));
  const { values, changes, set, discard } = form;
  const save = async () => {
    // What is not given has a sensible value; what is not changed stays.
    const { headers, ...others } = schedule ? changes : { cron: values.cron, ...changes };
    const problem = headerProblem(headers ?? '');
    if (problem !== undefined) throw invalidAt('body.headers', problem);
    const body = { ...others, ...(headers !== undefined && { headers: headersOf(headers) }) } as object;
    const params = { id: endpoint.id };
    if (schedule) {
      const one = { ...params, schedule_id: schedule.id };
      await call('PUT /api/endpoints/{id}/schedules/{schedule_id}', { params: one, body });
    } else await call('POST /api/endpoints/{id}/schedules', { params, body: { cron: values.cron, ...body } });
    invalidate(`/api/endpoints/${endpoint.id}/schedules`);
    discard();
    onClose();
  };
  const cancel = () => {
    discard();
    onClose();
  };
  return (
    <Dialog title={schedule ? 'Change the schedule' : 'Add a schedule'} losesNothing onClose={onClose}>
      <Form
        action={schedule ? 'Save' : 'Add'}
        isDisabled={schedule !== undefined && !form.isChanged}
        onSubmit={save}
        onCancel={cancel}
      >
        {(problemAt) => (
          <>
            <div class="row">
              <TextField
                label="When"
                hint="Minute, hour, day, month, day of the week: 0 9 * * 1-5; or @hourly, @daily"
                value={values.cron}
                problem={problemAt('body.cron')}
                onInput={(value) => set('cron', value)}
              />
              <TimezoneField
                value={values.timezone}
                problem={problemAt('body.timezone')}
                onInput={(value) => set('timezone', value)}
              />
            </div>
            <div class="row">
              <SelectField
                label="Method"
                value={values.method}
                options={METHODS}
                problem={problemAt('body.method')}
                onChange={(value) => set('method', value)}
              />
              <TextField
                label="Path"
                hint="With a query, if there is one"
                value={values.path}
                problem={problemAt('body.path')}
                onInput={(value) => set('path', value)}
              />
            </div>
            <TextArea
              label="Headers"
              hint="A line each: Name: value. Keys belong into the secrets of the endpoint."
              rows={2}
              value={values.headers}
              problem={problemAt('body.headers')}
              onInput={(value) => set('headers', value)}
            />
            {schedule?.body_base64 === undefined && (
              <TextArea
                label="Body"
                rows={3}
                value={values.body}
                problem={problemAt('body.body')}
                onInput={(value) => set('body', value)}
              />
            )}
            <Check label="On" isChecked={values.enabled} onChange={(value) => set('enabled', value)} />
          </>
        )}
      </Form>
    </Dialog>
  );
}

interface TimezoneProps {
  readonly value: string;
  readonly problem: string | undefined;
  readonly onInput: (value: string) => void;
}

function TimezoneField({ value, problem, onInput }: TimezoneProps) {
  return (
    <Field label="Time zone" hint="Such as Europe/Berlin" problem={problem}>
      {(attributes) => (
        <>
          <input
            class="input"
            list="timezones"
            spellcheck={false}
            {...attributes}
            value={value}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          <datalist id="timezones">
            {Intl.supportedValuesOf('timeZone').map((name) => (
              <option key={name} value={name} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

function useSaved(endpoint: Endpoint, schedule: Schedule | undefined) {
  return useMemo(() => {
    return {
      cron: schedule?.cron ?? '',
      timezone: schedule?.timezone ?? 'UTC',
      method: (schedule?.method ?? endpoint.method) as (typeof METHODS)[number],
      path: schedule?.path ?? '',
      headers: headerLines(schedule?.headers ?? {}),
      body: schedule?.body ?? '',
      enabled: schedule?.enabled ?? true,
    };
  }, [endpoint, schedule]);
}
