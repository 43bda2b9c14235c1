/** One endpoint: what it is and how it is, and a tab for each thing that one does with it. */
import { useLayoutEffect } from 'preact/hooks';
import { Link } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { keyed, type Lazy, type LazyPage, lazyPart, type PageProps } from '../base/lazy.js';
import { Loaded } from '../base/notices.js';
import { Page, Tabs } from '../base/page.js';
import { Badge, Method } from '../base/text.js';
import { Visible } from '../base/visible.js';
import { WhoChanged } from '../base/who-changed.js';
import type { Endpoint } from '../generated/routes.js';
import { Actions } from './actions.js';
import { addressOf } from './address.js';
import { useFollowedDraft } from './code/draft.js';
import { LeftDraft } from './code/left-draft.js';
import { State } from './state.js';
import { type Tab, type TabName, visibleTabs } from './tabs.js';
import { Trouble } from './trouble.js';

interface TabPart {
  readonly Content: Lazy<{ readonly endpoint: Endpoint }>;
  /** Begins to read what it shows, while the endpoint is read. A failure is said when it is shown. */
  readonly ahead?: (endpointId: string, left: AbortSignal) => void;
}

const PARTS: Readonly<Record<TabName, TabPart>> = {
  code: { Content: lazyPart(async () => (await import('./code/code-tab.js')).CodeTab) },
  try: { Content: lazyPart(async () => (await import('./try/try-tab.js')).TryTab) },
  logs: {
    Content: lazyPart(async () => (await import('./logs/logs-tab.js')).LogsTab),
    ahead: (id, left) => {
      import('./logs/logs-tab.js').then(
        ({ LogsTab }) => LogsTab.ahead(id, left),
        () => undefined,
      );
    },
  },
  figures: { Content: lazyPart(async () => (await import('./figures/figures-tab.js')).FiguresTab) },
  versions: { Content: lazyPart(async () => (await import('./versions/versions-tab.js')).VersionsTab) },
  settings: { Content: lazyPart(async () => (await import('./settings/settings-tab.js')).SettingsTab) },
};

const SUBJECT = { kind: 'endpoint', list: '/ui/endpoints', listName: 'All endpoints' } as const;

function OneEndpoint({ params: { id = '', tab = 'code' } }: PageProps) {
  const result = useQuery('GET /api/endpoints/{id}', { params: { id } });
  const { data: endpoint } = result;
  const part = partOf(tab);
  // Its code comes while the endpoint is read.
  useLayoutEffect(() => part?.Content.preload(), [part]);
  useLayoutEffect(() => {
    if (endpoint) return;
    const left = new AbortController();
    part?.ahead?.(id, left.signal);
    return () => left.abort();
  }, []);
  if (endpoint && result.error?.status !== 404) return <EndpointFrame endpoint={endpoint} tab={tab} />;
  return (
    <Page title="Endpoint">
      <Loaded result={result} lines={6} subject={SUBJECT}>
        {(deleted) => <LeftDraft endpoint={deleted} />}
      </Loaded>
    </Page>
  );
}

export const EndpointPage: LazyPage = Object.assign(keyed(OneEndpoint), {
  // Before it is known who looks, and which tabs there are.
  preload: (props: PageProps) => {
    const name = Object.keys(PARTS).find((name) => name === props.params['tab']) ?? 'code';
    PARTS[name as TabName].Content.preload();
  },
});

/** The tab of this name, or the first one. */
function tabOf(name: string): Tab | undefined {
  const tabs = visibleTabs();
  return tabs.find((tab) => tab.name === name) ?? tabs[0];
}

function partOf(name: string): TabPart | undefined {
  const tab = tabOf(name);
  return tab && PARTS[tab.name];
}

function EndpointFrame({ endpoint, tab }: { readonly endpoint: Endpoint; readonly tab: string }) {
  const draft = useFollowedDraft(endpoint);
  const tabs = visibleTabs();
  const current = tabOf(tab);
  const part = partOf(tab);
  return (
    <Page
      title={`${endpoint.method} ${endpoint.route}`}
      heading={<Heading endpoint={endpoint} />}
      crumbs={<Crumbs endpoint={endpoint} />}
      actions={<Actions endpoint={endpoint} draft={draft} />}
    >
      <Trouble endpoint={endpoint} tab={current?.name} />
      <Tabs
        label="Sections of the endpoint"
        tabs={tabs.map(({ name, label }) => ({
          to: addressOf(endpoint, name),
          label,
          isCurrent: name === current?.name,
        }))}
      />
      {part && <part.Content endpoint={endpoint} />}
    </Page>
  );
}

function Heading({ endpoint }: { readonly endpoint: Endpoint }) {
  return (
    <span class="endpoint-heading">
      <span>
        <Method name={endpoint.method} />{' '}
        <span class="mono">
          <Visible text={endpoint.route} isOneLine />
        </span>
      </span>
      <State endpoint={endpoint} />
      {!endpoint.enabled && <Badge tone="warn">disabled</Badge>}
    </span>
  );
}

/** Domain, collection and name. */
function Crumbs({ endpoint: { id, domain, collection_id, name } }: { readonly endpoint: Endpoint }) {
  const { data: collection } = useQuery(
    'GET /api/collections/{id}',
    collection_id === null || !may('collections:read') ? undefined : { params: { id: collection_id } },
  );
  return (
    <>
      <Link href="/ui/endpoints">Endpoints</Link> /{' '}
      <Link href={searchFor(domain)}>{domain === '*' ? 'any host' : domain}</Link>
      {collection && (
        <>
          {' '}
          /{' '}
          <Link href={searchFor(collection.name)}>
            <Visible text={collection.name} isOneLine />
          </Link>
        </>
      )}{' '}
      / <Visible text={name} isOneLine />
      <WhoChanged kind="endpoint" id={id} />
    </>
  );
}

const searchFor = (text: string) => `/ui/endpoints?${new URLSearchParams({ search: text })}`;
