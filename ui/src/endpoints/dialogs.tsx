/** The dialogs of the tree: they make, edit and delete domains, collections and endpoints. */
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { call } from '../api/client.js';
import { type Result, useQuery } from '../api/query.js';
import { ask, openDialog } from '../base/ask.js';
import { SelectField, TextField } from '../base/controls.js';
import { FormDialog } from '../base/dialog.js';
import { count } from '../base/text.js';
import { done } from '../base/toasts.js';
import type { Collection, Domain } from '../generated/routes.js';

export function askForDomain(): void {
  ask({
    title: 'New domain',
    action: 'Create',
    fields: {
      host: {
        label: 'Host',
        placeholder: 'api.example.com',
        hint: 'The name in the address of requests. It has to lead to the gateway.',
        required: true,
        autofocus: true,
      },
      name: { label: 'Name', hint: 'For people; the host unless given.' },
    },
    async run({ host, name }) {
      const body = { host: host.trim(), name: name.trim() || nameFrom(host) };
      await call('POST /api/domains', { body });
      done(`Created ${body.host}.`);
    },
  });
}

export function askToDeleteDomain(domain: Domain): void {
  ask({
    title: `Delete ${domain.host}?`,
    action: 'Delete',
    isDangerous: true,
    text: <DeletedWithDomain domain={domain} />,
    async run() {
      await call('DELETE /api/domains/{id}', { params: { id: domain.id } });
      done(`${domain.host} is deleted.`);
    },
  });
}

function DeletedWithDomain({ domain }: { readonly domain: Domain }) {
  const collections = useQuery('GET /api/domains/{id}/collections', { params: { id: domain.id } });
  const endpoints = useWhole(
    useQuery('GET /api/overview/endpoints', { query: { domain: domain.host, limit: MOST_READ } }),
  );
  return <DeletedWithIt collections={collections.data?.length} endpoints={endpoints} />;
}

const MOST_READ = 1_000;

/** All pages of a list; undefined until they are there. */
function useWhole<T>(result: Result<readonly T[]> & { readonly more: () => Promise<void> }) {
  const { data, hasMore, isLoading, error } = result;
  useEffect(() => {
    if (hasMore && !isLoading && !error) void result.more();
  }, [hasMore, isLoading, error]);
  return hasMore ? undefined : data;
}

interface DeletedWithItProps {
  /** Undefined: not known yet, or not to be read. */
  readonly collections: number | undefined;
  readonly endpoints: readonly { readonly id: string; readonly running?: boolean }[] | undefined;
}

function DeletedWithIt({ collections = 0, endpoints }: DeletedWithItProps) {
  if (!endpoints)
    return <p>All its endpoints are deleted with it, with their versions. This cannot be undone.</p>;
  const running = endpoints.filter((endpoint) => endpoint.running === true).length;
  const lost = [
    ...(collections > 0 ? [numbered(collections, 'collection')] : []),
    ...(endpoints.length > 0 ? [numbered(endpoints.length, 'endpoint')] : []),
  ];
  if (lost.length === 0) return <p>There are no endpoints in it. This cannot be undone.</p>;
  return (
    <p>
      Deleted with it: {lost.join(' and ')}
      {endpoints.length > 0 && ', with their versions. What runs of them ends'}.{' '}
      {running > 0 && `${count(running)} of the endpoints ${running === 1 ? 'runs' : 'run'} now. `}
      This cannot be undone.
    </p>
  );
}

/** No longer than a name may be: what is wrong with a longer text is said where it stands. */
function nameFrom(text: string): string {
  return text.trim().slice(0, 255);
}

function numbered(many: number, noun: string): string {
  return `${count(many)} ${noun}${many === 1 ? '' : 's'}`;
}

export function askForCollection(domain: Domain): void {
  ask({
    title: `New collection in ${domain.host}`,
    action: 'Create',
    fields: {
      name: { label: 'Name', required: true, autofocus: true },
      base_path: {
        label: 'Base path',
        placeholder: '/v1',
        hint: 'Stands before the paths of its endpoints. It may be empty.',
      },
    },
    async run({ name, base_path }) {
      const body = { name: name.trim(), base_path: base_path.trim() || null, domain_id: domain.id };
      await call('POST /api/collections', { body });
      done(`Created ${body.name}.`);
    },
  });
}

export function askToDeleteCollection({ id, name }: Collection): void {
  ask({
    title: `Delete the collection ${name}?`,
    action: 'Delete',
    isDangerous: true,
    text: <DeletedWithCollection id={id} />,
    async run() {
      await call('DELETE /api/collections/{id}', { params: { id } });
      done(`${name} is deleted.`);
    },
  });
}

function DeletedWithCollection({ id }: { readonly id: string }) {
  const { data } = useQuery('GET /api/collections/{id}/endpoints', { params: { id } });
  return <DeletedWithIt collections={0} endpoints={data} />;
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const FIRST_CODE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    Response::text(200, format!("Hello from {}", req.path))
}

handler_loop!(handle);
`;

/** Where a new endpoint is to be; nothing of it is known unless it is given. */
interface NewEndpointPlace {
  readonly host?: string;
  readonly collection?: Collection;
}

interface NewEndpointProps extends NewEndpointPlace {
  readonly onClose: () => void;
}

export function openNewEndpoint(place: NewEndpointPlace = {}): void {
  openDialog((onClose) => <NewEndpoint {...place} onClose={onClose} />);
}

export function NewEndpoint({ host: known = '', collection, onClose }: NewEndpointProps) {
  const domains = useQuery('GET /api/domains', {});
  const [method, setMethod] = useState<(typeof METHODS)[number]>('GET');
  const [host, setHost] = useState(known);
  const [path, setPath] = useState('/');
  const [name, setName] = useState('');
  const [, navigate] = useLocation();
  const hosts = (domains.data ?? []).map((domain) => domain.host);
  const create = async () => {
    const { data } = await call('POST /api/endpoints', {
      body: {
        ...{ method, path: path.trim(), domain: host.trim() || '*' },
        ...{ name: name.trim() || nameFrom(path), code: FIRST_CODE, collection_id: collection?.id ?? null },
      },
    });
    navigate(`/ui/endpoints/${data.id}`);
  };
  return (
    <FormDialog
      title={collection ? `New endpoint in ${collection.name}` : 'New endpoint'}
      action="Create"
      onSubmit={create}
      onClose={onClose}
    >
      {(problemAt) => (
        <>
          <div class="row">
            <SelectField label="Method" value={method} options={METHODS} onChange={setMethod} />
            {collection || known !== '' ? (
              <TextField label="Host" value={known} onInput={() => undefined} />
            ) : (
              <SelectField
                label="Host"
                value={host}
                options={[{ value: '', label: 'Any host' }, ...hosts]}
                onChange={setHost}
              />
            )}
          </div>
          <TextField
            label="Path"
            problem={problemAt('body.path')}
            placeholder="/pets/{id}"
            hint={
              collection?.base_path
                ? `Behind ${collection.base_path}. {name} stands for a segment, {*rest} for all that follows.`
                : '{name} stands for a segment, {*rest} for all that follows.'
            }
            required
            autofocus
            value={path}
            onInput={setPath}
          />
          <TextField
            label="Name"
            hint="For people; the path unless given."
            problem={problemAt('body.name')}
            value={name}
            onInput={setName}
          />
        </>
      )}
    </FormDialog>
  );
}
