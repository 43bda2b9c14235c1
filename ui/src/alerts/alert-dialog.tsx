/** The form of an alert. */
import { useState } from 'preact/hooks';
import { call, get } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { Check, SelectField, TextField } from '../base/controls.js';
import { Dialog } from '../base/dialog.js';
import { Form, type ProblemAt } from '../base/form.js';
import { ShownOnce } from '../base/shown-once.js';
import { done } from '../base/toasts.js';
import type { Alert } from '../generated/routes.js';
import { type About, aboutOf, aboutsOf, CONDITIONS, type Condition } from './conditions.js';

interface AlertDialogProps {
  /** Undefined: a new one. */
  readonly alert?: Alert;
  readonly onClose: () => void;
}

interface Typed {
  readonly on: Condition;
  readonly about: About;
  /** A host, or the name of an endpoint or a service. */
  readonly subject: string;
  readonly url: string;
  readonly percent: string;
  readonly minutes: string;
  readonly days: string;
  readonly enabled: boolean;
}

export function AlertDialog({ alert, onClose }: AlertDialogProps) {
  const [typed, setTyped] = useState(() => typedOf(alert));
  const [secret, setSecret] = useState<string>();
  const save = async () => {
    const body = await bodyOf(typed);
    if (alert) {
      await call('PUT /api/alerts/{id}', { params: { id: alert.id }, body });
      done('The alert is saved.');
      onClose();
    } else setSecret((await call('POST /api/alerts', { body: { ...body, on: typed.on } })).data.secret);
    invalidate('/api/alerts');
  };
  if (secret !== undefined)
    return (
      <ShownOnce
        title="The secret of the new alert"
        label="Secret"
        value={secret}
        hint="It signs the webhooks, so that their receiver knows them. Copy it now: nothing shows it again."
        onClose={onClose}
      />
    );
  return (
    <Dialog title={alert ? 'Edit the alert' : 'New alert'} onClose={onClose}>
      <Form action={alert ? 'Save' : 'Create'} onSubmit={save} onCancel={onClose}>
        {(problemAt) => (
          <Fields
            typed={typed}
            isNew={!alert}
            onChange={(changed) => setTyped((before) => ({ ...before, ...changed }))}
            problemAt={problemAt}
          />
        )}
      </Form>
    </Dialog>
  );
}

const ABOUTS: Readonly<Record<About, string>> = {
  all: 'Everything',
  host: 'A host',
  endpoint: 'An endpoint',
  service: 'A service',
};
const SUBJECTS = {
  host: ['Host', 'api.example.com', 'body.scope'],
  endpoint: ['Endpoint', 'GET api.example.com/pets/{id}', 'query.name'],
  service: ['Service', 'Its name', 'query.name'],
} as const;

interface FieldsProps {
  readonly typed: Typed;
  readonly isNew: boolean;
  readonly onChange: (changed: Partial<Typed>) => void;
  readonly problemAt: ProblemAt;
}

function Fields({ typed, isNew, onChange, problemAt }: FieldsProps) {
  const { on, about, subject, url, percent, minutes, days, enabled } = typed;
  const abouts = aboutsOf(on);
  const number = (name: 'percent' | 'minutes' | 'days', label: string, max: number) => (
    <TextField
      label={label}
      type="number"
      required
      min={1}
      max={max}
      value={{ percent, minutes, days }[name]}
      onInput={(text) => onChange({ [name]: text })}
      problem={problemAt(`body.${name}`)}
    />
  );
  const [label, placeholder, place] = about === 'all' ? [] : SUBJECTS[about];
  return (
    <>
      {isNew && (
        <SelectField
          label="When"
          options={(Object.keys(CONDITIONS) as Condition[]).map((value) => ({
            value,
            label: CONDITIONS[value].label,
          }))}
          value={on}
          onChange={(value) => onChange({ on: value, about: firstAbout(value), subject: '' })}
        />
      )}
      {on === 'error_rate' && (
        <div class="settings">
          {number('percent', 'Percent of the requests', 100)}
          {number('minutes', 'Of so many minutes', 60)}
        </div>
      )}
      {on === 'certificate_expiry' && number('days', 'Days before', 365)}
      <SelectField
        label="About"
        options={abouts.map((value) => ({ value, label: ABOUTS[value] }))}
        value={about}
        onChange={(value) => onChange({ about: value, subject: '' })}
      />
      {label !== undefined && (
        <TextField
          label={label}
          required
          autocomplete="off"
          placeholder={placeholder}
          value={subject}
          onInput={(text) => onChange({ subject: text })}
          problem={problemAt(place)}
        />
      )}
      <TextField
        label="Webhook"
        type="url"
        required
        autocomplete="off"
        placeholder="https://hooks.example.com/edge"
        hint="Gets a POST with JSON when it begins, and one when it is over."
        value={url}
        onInput={(text) => onChange({ url: text })}
        problem={problemAt('body.url')}
      />
      <Check label="Enabled" isChecked={enabled} onChange={(isChecked) => onChange({ enabled: isChecked })} />
    </>
  );
}

const firstAbout = (on: Condition): About => aboutsOf(on)[0] ?? 'host';

function typedOf(alert: Alert | undefined): Typed {
  const { on = 'crash_loop', scope = null, url = '', enabled = true } = alert ?? {};
  const { percent = 5, minutes = 5, days = 14 } = alert ?? {};
  return {
    ...{ on, about: alert ? aboutOf(scope) : firstAbout(on), url, enabled },
    subject: scope?.domain ?? scope?.endpoint_id ?? scope?.service_id ?? '',
    ...{ percent: String(percent), minutes: String(minutes), days: String(days) },
  };
}

/** @throws ApiError also when nothing has the name */
async function bodyOf({ about, subject, url, percent, minutes, days, enabled }: Typed) {
  return {
    scope: await scopeOf(about, subject.trim()),
    ...{ url: url.trim(), enabled },
    ...{ percent: Number(percent), minutes: Number(minutes), days: Number(days) },
  };
}

async function scopeOf(about: About, subject: string): Promise<Alert['scope']> {
  if (about === 'all') return null;
  if (about === 'host') return { domain: subject };
  const { id } = await get('GET /api/resolve', { query: { kind: about, name: subject } });
  return about === 'endpoint' ? { endpoint_id: id } : { service_id: id };
}
