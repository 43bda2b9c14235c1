/** The tree of domains, collections and endpoints, and how each does. */
import { useState } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { useAddressValue } from '../base/address.js';
import { Button, Check } from '../base/controls.js';
import { EndpointState } from '../base/endpoint-state.js';
import { Menu, type MenuItem } from '../base/menu.js';
import { Empty, ErrorNotice, Loaded } from '../base/notices.js';
import { Page } from '../base/page.js';
import { count, Method } from '../base/text.js';
import { useDebounced } from '../base/use-debounced.js';
import { VirtualList } from '../base/virtual-list.js';
import { Visible } from '../base/visible.js';
import type { BriefEndpoint, Collection, Domain } from '../generated/routes.js';
import {
  askForCollection,
  askForDomain,
  askToDeleteCollection,
  askToDeleteDomain,
  NewEndpoint,
  openNewEndpoint,
} from './dialogs.js';
import { type Row, rowKey, rowsOf } from './rows.js';

const ROW_HEIGHT = 42;
const PAGE_SIZE = 500;
const SETTLED_AFTER_MS = 200;

export function EndpointsPage() {
  const [search, setSearch] = useAddressValue('search');
  const [failing, setFailing] = useAddressValue('failing');
  const [isNew, setNew] = useAddressValue('new');
  const debounced = useDebounced(search.trim(), SETTLED_AFTER_MS);
  const isFiltered = debounced !== '' || failing !== '';
  return (
    <Page
      title="Endpoints"
      actions={
        <>
          {may('domains:write') && me.value?.domains === null && (
            <Button onClick={askForDomain}>New domain</Button>
          )}
          {may('endpoints:write') && (
            <Button look="primary" onClick={() => openNewEndpoint()}>
              New endpoint
            </Button>
          )}
        </>
      }
    >
      <search class="filters">
        <input
          class="input"
          type="search"
          aria-label="Search endpoints"
          placeholder="Search by host, path or name"
          spellcheck={false}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <Check
          label="Only with errors"
          isChecked={failing !== ''}
          onChange={(isChecked) => setFailing(isChecked ? 'true' : '')}
        />
      </search>
      <Tree search={debounced} failing={failing !== ''} isFiltered={isFiltered} />
      {isNew === 'endpoint' && may('endpoints:write') && <NewEndpoint onClose={() => setNew('')} />}
    </Page>
  );
}

interface TreeProps {
  readonly search: string;
  readonly failing: boolean;
  readonly isFiltered: boolean;
}

function Tree({ search, failing, isFiltered }: TreeProps) {
  const endpoints = useQuery('GET /api/overview/endpoints', {
    query: { limit: PAGE_SIZE, search, ...(failing && { failing }) },
  });
  const domains = useQuery('GET /api/domains', {});
  const collections = useQuery('GET /api/collections', {});
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const toggle = (host: string) => {
    const next = new Set(closed);
    if (!next.delete(host)) next.add(host);
    setClosed(next);
  };
  const failed = domains.error ?? collections.error;
  return (
    <>
      {failed && <ErrorNotice error={failed} onRetry={domains.refresh} />}
      <Loaded result={endpoints} lines={8}>
        {(loaded) => {
          const rows = rowsOf({
            endpoints: loaded,
            domains: domains.data ?? [],
            collections: collections.data ?? [],
            isWhole: !endpoints.hasMore,
            hasEmpty: !isFiltered,
            isClosed: (host) => closed.has(host) && !isFiltered,
          });
          if (rows.length === 0) return <NoMatches isFiltered={isFiltered} />;
          return (
            <div class="card">
              <VirtualList
                label="Domains, collections and endpoints"
                items={rows}
                rowHeight={ROW_HEIGHT}
                keyOf={rowKey}
                {...(endpoints.hasMore && { onEnd: () => void endpoints.more() })}
              >
                {(row) => (
                  <TreeRow
                    row={row}
                    isClosed={row.kind === 'domain' && closed.has(row.host)}
                    toggle={toggle}
                  />
                )}
              </VirtualList>
            </div>
          );
        }}
      </Loaded>
    </>
  );
}

function NoMatches({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No endpoint is like this">
        <p>Search for a part of a host, a path or a name, such as “GET api.example.com/pets”.</p>
      </Empty>
    );
  return (
    <Empty title="There are no endpoints yet">
      <p>An endpoint is a route and the Rust code behind it. Make one, or import a whole API.</p>
      <div class="actions">
        {may('endpoints:write') && (
          <Button look="primary" onClick={() => openNewEndpoint()}>
            New endpoint
          </Button>
        )}
        {may('imports:write') && (
          <Link class="button" href="/ui/import">
            Import an API
          </Link>
        )}
      </div>
    </Empty>
  );
}

interface TreeRowProps {
  readonly row: Row;
  readonly isClosed: boolean;
  readonly toggle: (host: string) => void;
}

function TreeRow({ row, isClosed, toggle }: TreeRowProps) {
  if (row.kind === 'endpoint') return <EndpointRow endpoint={row.endpoint} />;
  if (row.kind === 'collection')
    return (
      <div class="tree-row collection">
        <h3 class="truncate">
          <Visible text={row.collection.name} isOneLine />
        </h3>
        {row.collection.base_path && <code class="muted truncate">{row.collection.base_path}</code>}
        <Menu
          label={`What to do with the collection ${row.collection.name}`}
          items={collectionMenu(row.collection, row.host)}
        />
      </div>
    );
  const { host, domain } = row;
  return (
    <div class="tree-row domain">
      <button type="button" aria-expanded={!isClosed} onClick={() => toggle(host)}>
        <span class="twist" aria-hidden="true" />
        <h2 class="truncate">{host === '*' ? 'Any host' : host}</h2>
      </button>
      {domain && domain.name !== host && (
        <span class="muted truncate">
          <Visible text={domain.name} isOneLine />
        </span>
      )}
      {domain && <Menu label={`What to do with the domain ${host}`} items={domainMenu(domain)} />}
    </div>
  );
}

function EndpointRow({ endpoint }: { readonly endpoint: BriefEndpoint }) {
  const { id, method, route, name, enabled, requests, errors } = endpoint;
  return (
    <Link class="tree-row endpoint" href={`/ui/endpoints/${id}`}>
      <Method name={method} />
      <code class="truncate route">
        <Visible text={route} isOneLine />
      </code>
      <span class="truncate muted name">
        <Visible text={name} isOneLine />
      </span>
      <span class="number small muted figures">
        {requests > 0 && `${count(requests)} req/h`}
        {errors > 0 && (
          <span class="bad-text">
            {' '}
            {count(errors)} {errors === 1 ? 'error' : 'errors'}
          </span>
        )}
      </span>
      {enabled ? <EndpointState {...endpoint} /> : <span class="badge warn">Disabled</span>}
    </Link>
  );
}

function domainMenu(domain: Domain): readonly MenuItem[] {
  return [
    ...(may('endpoints:write')
      ? [{ label: 'New endpoint', onClick: () => openNewEndpoint({ host: domain.host }) }]
      : []),
    ...(may('collections:write')
      ? [{ label: 'New collection', onClick: () => askForCollection(domain) }]
      : []),
    { label: 'Settings', to: `/ui/domains/${domain.id}` },
    ...(may('domains:write')
      ? [{ label: 'Delete', isDangerous: true, onClick: () => askToDeleteDomain(domain) }]
      : []),
  ];
}

function collectionMenu(collection: Collection, host: string): readonly MenuItem[] {
  return [
    ...(may('endpoints:write')
      ? [{ label: 'New endpoint', onClick: () => openNewEndpoint({ host, collection }) }]
      : []),
    { label: 'Settings', to: `/ui/collections/${collection.id}` },
    ...(may('collections:write')
      ? [
          {
            label: 'Delete',
            isDangerous: true,
            onClick: () => askToDeleteCollection(collection),
          },
        ]
      : []),
  ];
}
