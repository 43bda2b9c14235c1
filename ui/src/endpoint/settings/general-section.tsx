/** Name and address of an endpoint, where it belongs, and its end. */
import { useMemo } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { call } from '../../api/client.js';
import { invalidate, useQuery } from '../../api/query.js';
import { may } from '../../api/session.js';
import { Button, Check, SelectField, TextArea, TextField } from '../../base/controls.js';
import { done } from '../../base/toasts.js';
import type { Endpoint } from '../../generated/routes.js';
import { SaveForm } from '../../settings/save-form.js';
import { Section } from '../../settings/section.js';
import { useForm } from '../../settings/use-form.js';
import { askToDelete } from './delete-endpoint.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const FIELDS = ['name', 'description', 'method', 'path', 'domain', 'collection_id', 'enabled'] as const;

export function GeneralSection({ endpoint }: { readonly endpoint: Endpoint }) {
  const form = useForm(`endpoint ${endpoint.id}`, useSaved(endpoint));
  const { values, changes, set } = form;
  const mayEdit = may('endpoints:write');
  const save = async () => {
    const body = {
      ...changes,
      ...('description' in changes && { description: changes.description || null }),
    };
    const answer = await call('PUT /api/endpoints/{id}', { params: { id: endpoint.id }, body });
    invalidate('/api/endpoints', '/api/collections');
    return answer;
  };
  return (
    <>
      <Section title="General">
        <SaveForm form={form} places={FIELDS.map((name) => `body.${name}`)} mayEdit={mayEdit} onSave={save}>
          {(problem) => (
            <>
              <TextField
                label="Name"
                value={values.name}
                problem={problem('body.name')}
                onInput={(value) => set('name', value)}
              />
              <TextArea
                label="Description"
                value={values.description}
                rows={2}
                problem={problem('body.description')}
                onInput={(value) => set('description', value)}
              />
              <div class="row method-and-path">
                <SelectField
                  label="Method"
                  value={values.method}
                  options={METHODS}
                  problem={problem('body.method')}
                  onChange={(value) => set('method', value)}
                />
                <TextField
                  label="Path"
                  hint="Such as /orders/{id}; below the base path of the collection"
                  value={values.path}
                  problem={problem('body.path')}
                  onInput={(value) => set('path', value)}
                />
              </div>
              <Belonging
                values={values}
                problem={problem}
                onChange={(collection, domain) => {
                  set('collection_id', collection);
                  if (domain !== undefined) set('domain', domain);
                }}
                onDomain={(domain) => set('domain', domain)}
              />
              <Check
                label="Enabled"
                hint="Requests are served only while it is."
                isChecked={values.enabled}
                onChange={(value) => set('enabled', value)}
              />
            </>
          )}
        </SaveForm>
      </Section>
      {mayEdit && <Deletion endpoint={endpoint} />}
    </>
  );
}

function useSaved(endpoint: Endpoint) {
  const { name, description, method, path, domain, collection_id, enabled } = endpoint;
  return useMemo(
    () => ({ name, description: description ?? '', method, path, domain, collection_id, enabled }),
    [endpoint],
  );
}

interface BelongingProps {
  readonly values: { readonly domain: string; readonly collection_id: string | null };
  readonly problem: (place: string) => string | undefined;
  /** Called with the chosen collection, and the host of its domain. */
  readonly onChange: (collection: string | null, domain: string | undefined) => void;
  readonly onDomain: (domain: string) => void;
}

/** Collection and host: an endpoint of a collection has the host of its domain, or all hosts. */
function Belonging({ values, problem, onChange, onDomain }: BelongingProps) {
  const { data: domains = [] } = useQuery('GET /api/domains', may('domains:read') ? {} : undefined);
  const { data: collections = [] } = useQuery(
    'GET /api/collections',
    may('collections:read') ? {} : undefined,
  );
  const hosts = new Map(domains.map(({ id, host }) => [id, host]));
  return (
    <div class="row">
      <SelectField
        label="Collection"
        value={values.collection_id ?? ''}
        options={[
          { value: '', label: 'None' },
          ...collections.map(({ id, name, domain_id: domain }) => ({
            ...{ value: id, label: `${name} (${hosts.get(domain) ?? 'another domain'})` },
          })),
        ]}
        problem={problem('body.collection_id')}
        onChange={(id) => {
          const domain = collections.find((collection) => collection.id === id)?.domain_id;
          onChange(id === '' ? null : id, domain === undefined ? undefined : hosts.get(domain));
        }}
      />
      <TextField
        label="Host"
        hint="* is any host"
        value={values.domain}
        problem={problem('body.domain')}
        onInput={onDomain}
      />
    </div>
  );
}

function Deletion({ endpoint }: { readonly endpoint: Endpoint }) {
  const [, go] = useLocation();
  const deleted = () => {
    done(`${endpoint.name} is deleted`);
    go('/ui/endpoints');
  };
  return (
    <Section title="Delete">
      <p>Deletes the endpoint with all that belongs to it. You see what that is before it happens.</p>
      <div>
        <Button look="danger" onClick={() => askToDelete(endpoint, deleted)}>
          Delete this endpoint
        </Button>
      </div>
    </Section>
  );
}
