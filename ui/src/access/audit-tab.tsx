/** Who has changed what, and what was refused. */
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { useAddress } from '../base/address.js';
import { Button, SelectField, TextField } from '../base/controls.js';
import { MoreButton } from '../base/lists.js';
import { Empty, Loaded } from '../base/notices.js';
import type { AuditEntry } from '../generated/routes.js';
import { AuditRow } from './audit-row.js';

const LISTED = 50;
/** What the address and the API call alike. */
const FILTERS = [
  'actor_id',
  'outcome',
  'object_kind',
  'object_id',
  'request_id',
  'address',
  'since',
  'until',
] as const;
const KINDS = [
  ...['endpoint', 'domain', 'collection', 'service', 'user', 'token', 'session', 'alert', 'schedule'],
  ...['variable', 'secret', 'import', 'apply', 'object'],
];
const OUTCOMES = [
  { value: '', label: 'Any' },
  { value: 'changed', label: 'Changed' },
  { value: 'refused', label: 'Refused' },
];

export function AuditTab() {
  const [params, change] = useAddress();
  const given = FILTERS.flatMap((name) => {
    const value = params.get(name);
    return value === null ? [] : [[name, value] as const];
  });
  const result = useQuery('GET /api/audit', { query: { ...Object.fromEntries(given), limit: LISTED } });
  return (
    <>
      <Filters entries={result.data ?? []} />
      {given.length > 0 && (
        <div class="actions">
          <Button
            isSmall
            onClick={() => change(Object.fromEntries(FILTERS.map((name) => [name, undefined])))}
          >
            Clear the filters
          </Button>
        </div>
      )}
      <Loaded result={result} lines={8}>
        {(entries) =>
          entries.length > 0 ? (
            <>
              <ul class="card details-list" aria-label="Audit entries">
                {entries.map((entry) => (
                  <AuditRow key={entry.id} entry={entry} />
                ))}
              </ul>
              <MoreButton result={result} />
            </>
          ) : (
            <Empty title={given.length > 0 ? 'No entry is like this' : 'Nothing has been changed yet'}>
              <p>Every change by the API is here, and every one that was refused, with who asked for it.</p>
            </Empty>
          )
        }
      </Loaded>
    </>
  );
}

function Filters({ entries }: { readonly entries: readonly AuditEntry[] }) {
  const [params, change] = useAddress();
  const users = useQuery('GET /api/users', may('users:read') ? {} : undefined);
  const value = (name: string) => params.get(name) ?? '';
  const text = (name: (typeof FILTERS)[number], label: string) => (
    <TextField
      label={label}
      value={value(name)}
      onInput={(typed) => change({ [name]: typed.trim() }, true)}
    />
  );
  const actors = (users.data ?? []).map(({ id, email }) => ({ value: id, label: email }));
  const actor = value('actor_id');
  const kind = value('object_kind');
  const isOpen = ['object_id', 'request_id', 'address', 'since', 'until'].some((name) => params.has(name));
  return (
    <div class="stack tight">
      <div class="filters">
        <SelectField
          label="Who"
          options={[
            { value: '', label: 'Anybody' },
            ...actors,
            ...(actor !== '' && actors.every((one) => one.value !== actor)
              ? [
                  {
                    value: actor,
                    label: entries.find(({ names }) => names[actor])?.names[actor]?.name ?? actor,
                  },
                ]
              : []),
          ]}
          value={actor}
          onChange={(id) => change({ actor_id: id })}
        />
        <SelectField
          label="Outcome"
          options={OUTCOMES}
          value={value('outcome')}
          onChange={(outcome) => change({ outcome })}
        />
        <SelectField
          label="Kind"
          options={[
            { value: '', label: 'Any' },
            ...[...new Set([...KINDS, ...(kind === '' ? [] : [kind])])].map((one) => ({
              value: one,
              label: one,
            })),
          ]}
          value={kind}
          onChange={(object_kind) => change({ object_kind })}
        />
      </div>
      <details class="more" open={isOpen}>
        <summary>More filters</summary>
        <div class="filters">
          {text('object_id', 'Id of the object')}
          {text('request_id', 'Request id')}
          {text('address', 'Address of the client')}
          <TimeField label="Since" name="since" />
          <TimeField label="Until" name="until" />
        </div>
      </details>
    </div>
  );
}

/** A time of the reader's zone; the address has it as the API does. */
function TimeField({ label, name }: { readonly label: string; readonly name: 'since' | 'until' }) {
  const [params, change] = useAddress();
  const given = new Date(params.get(name) ?? Number.NaN);
  return (
    <TextField
      label={label}
      type="datetime-local"
      value={Number.isNaN(given.getTime()) ? '' : localText(given)}
      onInput={(text) => {
        const time = new Date(text);
        change({ [name]: Number.isNaN(time.getTime()) ? undefined : time.toISOString() }, true);
      }}
    />
  );
}

function localText(time: Date): string {
  const shifted = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
  return shifted.toISOString().slice(0, 16);
}
