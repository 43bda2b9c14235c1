/** The dialogs of the tree: they make, edit and delete domains, collections and endpoints. */
import { useEffect, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { call } from '../api/client.js';
import { type Result, useQuery } from '../api/query.js';
import { SelectField, TextField } from '../base/controls.js';
import { FormDialog } from '../base/dialog.js';
import { count } from '../base/text.js';
import { done } from '../base/toasts.js';
import type { Collection, Domain } from '../generated/routes.js';

/** What somebody wants to do. */
export type EndpointsAction =
  | { readonly what: 'new domain' }
  | { readonly what: 'delete domain' | 'new collection'; readonly domain: Domain }
  | { readonly what: 'delete collection'; readonly collection: Collection }
  | { readonly what: 'new endpoint'; readonly host?: string; readonly collection?: Collection };

interface Closable {
  readonly onClose: () => void;
}

export function EndpointsDialog({ action, onClose }: { readonly action: EndpointsAction } & Closable) {
  switch (action.what) {
    case 'new domain':
      return <NewDomain onClose={onClose} />;
    case 'delete domain':
      return <DeleteDomain domain={action.domain} onClose={onClose} />;
    case 'new collection':
      return <NewCollection domain={action.domain} onClose={onClose} />;
    case 'delete collection':
      return <DeleteCollection collection={action.collection} onClose={onClose} />;
    case 'new endpoint':
      return <NewEndpoint {...action} onClose={onClose} />;
  }
}

function NewDomain({ onClose }: Closable) {
  const [host, setHost] = useState('');
  const [name, setName] = useState('');
  const create = async () => {
    const body = { host: host.trim(), name: name.trim() || nameFrom(host) };
    await call('POST /api/domains', { body });
    done(`Created ${body.host}.`);
  };
  return (
    <FormDialog title="New domain" action="Create" onSubmit={create} onClose={onClose}>
      {(problemAt) => (
        <>
          <TextField
            label="Host"
            problem={problemAt('body.host')}
            placeholder="api.example.com"
            hint="The name in the address of requests. It has to lead to the gateway."
            required
            autofocus
            value={host}
            onInput={setHost}
          />
          <TextField
            label="Name"
            hint="For people; the host unless given."
            problem={problemAt('body.name')}
            value={name}
            onInput={setName}
          />
        </>
      )}
    </FormDialog>
  );
}

function DeleteDomain({ domain, onClose }: { readonly domain: Domain } & Closable) {
  const collections = useQuery('GET /api/domains/{id}/collections', { params: { id: domain.id } });
  const endpoints = useWhole(
    useQuery('GET /api/overview/endpoints', { query: { domain: domain.host, limit: MOST_READ } }),
  );
  const remove = async () => {
    await call('DELETE /api/domains/{id}', { params: { id: domain.id } });
    done(`${domain.host} is deleted.`);
  };
  return (
    <FormDialog
      title={`Delete ${domain.host}?`}
      action="Delete"
      isDangerous
      onSubmit={remove}
      onClose={onClose}
    >
      <DeletedWithIt collections={collections.data?.length} endpoints={endpoints} />
    </FormDialog>
  );
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

function NewCollection({ domain, onClose }: { readonly domain: Domain } & Closable) {
  const [name, setName] = useState('');
  const [base, setBase] = useState('');
  const create = async () => {
    const body = { name: name.trim(), base_path: base.trim() || null, domain_id: domain.id };
    await call('POST /api/collections', { body });
    done(`Created ${body.name}.`);
  };
  return (
    <FormDialog
      title={`New collection in ${domain.host}`}
      action="Create"
      onSubmit={create}
      onClose={onClose}
    >
      {(problemAt) => (
        <>
          <TextField
            label="Name"
            required
            autofocus
            problem={problemAt('body.name')}
            value={name}
            onInput={setName}
          />
          <TextField
            label="Base path"
            problem={problemAt('body.base_path')}
            placeholder="/v1"
            hint="Stands before the paths of its endpoints. It may be empty."
            value={base}
            onInput={setBase}
          />
        </>
      )}
    </FormDialog>
  );
}

function DeleteCollection({ collection, onClose }: { readonly collection: Collection } & Closable) {
  const { data: endpoints } = useQuery('GET /api/collections/{id}/endpoints', {
    params: { id: collection.id },
  });
  const remove = async () => {
    await call('DELETE /api/collections/{id}', { params: { id: collection.id } });
    done(`${collection.name} is deleted.`);
  };
  return (
    <FormDialog
      title={`Delete the collection ${collection.name}?`}
      action="Delete"
      isDangerous
      onSubmit={remove}
      onClose={onClose}
    >
      <DeletedWithIt collections={0} endpoints={endpoints} />
    </FormDialog>
  );
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const FIRST_CODE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    Response::text(200, format!("Hello from {}", req.path))
}

handler_loop!(handle);
`;

type NewEndpointProps = Omit<Extract<EndpointsAction, { what: 'new endpoint' }>, 'what'> & Closable;

function NewEndpoint({ host: known = '', collection, onClose }: NewEndpointProps) {
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
