/** The form of an alert. */
import { useMemo, useState } from 'preact/hooks';
import { call, get } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { Check, SelectField, TextField } from '../base/controls.js';
import { Dialog } from '../base/dialog.js';
import { Form, type ProblemAt } from '../base/form.js';
import { DeletedNotice } from '../base/last-seen.js';
import { ShownOnce } from '../base/shown-once.js';
import { done } from '../base/toasts.js';
import type { Alert } from '../generated/routes.js';
import { type Form as FormState, useForm } from '../settings/use-form.js';
import { type About, aboutOf, aboutsOf, CONDITIONS, type Condition } from './conditions.js';

interface AlertDialogProps {
  /** Undefined: a new one. */
  readonly alert?: Alert;
  /** Whether somebody else has deleted it while it is changed here. */
  readonly isDeleted?: boolean;
  readonly onClose: () => void;
}

interface AlertInput {
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
type TypedForm = FormState<AlertInput>;

export function AlertDialog({ alert, isDeleted = false, onClose }: AlertDialogProps) {
  // Whoever has the URL of a webhook can often send to it.
  const form = useForm(undefined, useSaved(alert));
  const [secret, setSecret] = useState<string>();
  const save = async () => {
    if (alert) {
      await call('PUT /api/alerts/{id}', { params: { id: alert.id }, body: await changesOf(form) });
      done('The alert is saved.');
      onClose();
    } else {
      const { on } = form.values;
      const body = { on, ...settingsOf(form.values), scope: await scopeOf(form.values) };
      setSecret((await call('POST /api/alerts', { body })).data.secret);
    }
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
      {isDeleted && <DeletedNotice kind="alert" />}
      <Form action={alert ? 'Save' : 'Create'} isDisabled={isDeleted} onSubmit={save} onCancel={onClose}>
        {(problemAt) => <Fields typed={form.values} isNew={!alert} set={form.set} problemAt={problemAt} />}
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
  readonly typed: AlertInput;
  readonly isNew: boolean;
  readonly set: TypedForm['set'];
  readonly problemAt: ProblemAt;
}

function Fields({ typed, isNew, set, problemAt }: FieldsProps) {
  const { on, about, subject, url, percent, minutes, days, enabled } = typed;
  const abouts = aboutsOf(on);
  const setAbout = (value: About) => {
    set('about', value);
    set('subject', '');
  };
  const number = (name: 'percent' | 'minutes' | 'days', label: string, max: number) => (
    <TextField
      label={label}
      type="number"
      required
      min={1}
      max={max}
      value={{ percent, minutes, days }[name]}
      onInput={(text) => set(name, text)}
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
          onChange={(value) => {
            set('on', value);
            setAbout(firstAbout(value));
          }}
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
        onChange={setAbout}
      />
      {label !== undefined && (
        <TextField
          label={label}
          required
          autocomplete="off"
          placeholder={placeholder}
          value={subject}
          onInput={(text) => set('subject', text)}
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
        onInput={(text) => set('url', text)}
        problem={problemAt('body.url')}
      />
      <Check label="Enabled" isChecked={enabled} onChange={(isChecked) => set('enabled', isChecked)} />
    </>
  );
}

const firstAbout = (on: Condition): About => aboutsOf(on)[0] ?? 'host';

function typedOf(alert: Alert | undefined): AlertInput {
  const { on = 'crash_loop', scope = null, url = '', enabled = true } = alert ?? {};
  const { percent = 5, minutes = 5, days = 14 } = alert ?? {};
  return {
    ...{ on, about: alert ? aboutOf(scope) : firstAbout(on), url, enabled },
    subject: scope?.domain ?? scope?.endpoint_id ?? scope?.service_id ?? '',
    ...{ percent: String(percent), minutes: String(minutes), days: String(days) },
  };
}

/** What is not typed here follows what somebody else changes meanwhile. */
function useSaved(alert: Alert | undefined): AlertInput {
  return useMemo(() => typedOf(alert), [alert]);
}

function settingsOf({ url, percent, minutes, days, enabled }: AlertInput) {
  return {
    ...{ url: url.trim(), enabled },
    ...{ percent: Number(percent), minutes: Number(minutes), days: Number(days) },
  };
}

/** What is not changed here is not sent: others may have changed it. */
async function changesOf({ values, changes }: TypedForm) {
  const settings = Object.entries(settingsOf(values)).filter(([name]) => name in changes);
  const isAboutOther = 'about' in changes || 'subject' in changes;
  return {
    ...(Object.fromEntries(settings) as Partial<ReturnType<typeof settingsOf>>),
    ...(isAboutOther && { scope: await scopeOf(values) }),
  };
}

/** @throws ApiError also when nothing has the name */
async function scopeOf({ about, subject }: AlertInput): Promise<Alert['scope']> {
  const name = subject.trim();
  if (about === 'all') return null;
  if (about === 'host') return { domain: name };
  const { id } = await get('GET /api/resolve', { query: { kind: about, name } });
  return about === 'endpoint' ? { endpoint_id: id } : { service_id: id };
}
