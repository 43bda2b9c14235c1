/** Name and address of a domain and of a collection, and whether they serve requests. */
import { useMemo } from 'preact/hooks';
import { call } from '../api/client.js';
import { may } from '../api/session.js';
import { Check, TextArea, TextField } from '../base/controls.js';
import type { Collection, Domain } from '../generated/routes.js';
import { SaveForm } from './save-form.js';
import { Section } from './section.js';
import { useForm } from './use-form.js';

const PLACES = ['name', 'host', 'base_path', 'description', 'enabled'].map((name) => `body.${name}`);

export function DomainGeneral({ domain }: { readonly domain: Domain }) {
  const saved = useMemo(
    () => ({
      ...{ host: domain.host, name: domain.name, enabled: domain.enabled },
      description: domain.description ?? '',
    }),
    [domain],
  );
  const form = useForm(`domain ${domain.id}`, saved);
  const save = () =>
    call('PUT /api/domains/{id}', {
      params: { id: domain.id },
      body: { ...form.changes, ...emptyAsNull(form.changes, 'description') },
    });
  return (
    <Section title="General">
      <SaveForm form={form} places={PLACES} mayEdit={may('domains:write')} onSave={save}>
        {(problem) => (
          <>
            <TextField
              label="Host"
              hint="The name in the address of requests. It has to lead to the gateway."
              value={form.values.host}
              problem={problem('body.host')}
              onInput={(value) => form.set('host', value.trim())}
            />
            <Shared values={form.values} set={form.set} problem={problem} />
          </>
        )}
      </SaveForm>
    </Section>
  );
}

export function CollectionGeneral({ collection }: { readonly collection: Collection }) {
  const saved = useMemo(
    () => ({
      ...{ name: collection.name, enabled: collection.enabled },
      base_path: collection.base_path ?? '',
      description: collection.description ?? '',
    }),
    [collection],
  );
  const form = useForm(`collection ${collection.id}`, saved);
  const save = () =>
    call('PUT /api/collections/{id}', {
      params: { id: collection.id },
      body: {
        ...form.changes,
        ...emptyAsNull(form.changes, 'description'),
        ...emptyAsNull(form.changes, 'base_path'),
      },
    });
  return (
    <Section title="General">
      <SaveForm form={form} places={PLACES} mayEdit={may('collections:write')} onSave={save}>
        {(problem) => (
          <>
            <TextField
              label="Base path"
              placeholder="/v1"
              hint="Stands before the paths of its endpoints. It may be empty."
              value={form.values.base_path}
              problem={problem('body.base_path')}
              onInput={(value) => form.set('base_path', value.trim())}
            />
            <Shared values={form.values} set={form.set} problem={problem} />
          </>
        )}
      </SaveForm>
    </Section>
  );
}

interface SharedValues {
  readonly name: string;
  readonly description: string;
  readonly enabled: boolean;
}

interface SharedProps {
  readonly values: SharedValues;
  set<K extends keyof SharedValues>(name: K, value: SharedValues[K]): void;
  readonly problem: (place: string) => string | undefined;
}

/** The fields that both have. */
function Shared({ values, set, problem }: SharedProps) {
  return (
    <>
      <TextField
        label="Name"
        value={values.name}
        problem={problem('body.name')}
        onInput={(value) => set('name', value)}
      />
      <TextArea
        label="Description"
        rows={2}
        value={values.description}
        problem={problem('body.description')}
        onInput={(value) => set('description', value)}
      />
      <Check
        label="Enabled"
        hint="Requests to its endpoints are served only while it is."
        isChecked={values.enabled}
        onChange={(value) => set('enabled', value)}
      />
    </>
  );
}

/** What the API calls null is an empty field. */
function emptyAsNull<K extends string>(changes: Partial<Record<K, string>>, name: K) {
  return (name in changes ? { [name]: changes[name] || null } : {}) as Partial<Record<K, string | null>>;
}
