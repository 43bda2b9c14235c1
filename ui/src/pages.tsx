/** Which page is at which address. The first three come with the application, the others when they are opened. */
import type { FunctionComponent } from 'preact';
import { useLayoutEffect } from 'preact/hooks';
import { Link, Route, Switch } from 'wouter-preact';
import { type LazyPage, lazyPage, type PageProps } from './base/lazy.js';
import { Empty } from './base/notices.js';
import { Page } from './base/page.js';
import { EndpointPage } from './endpoint/endpoint-page.js';
import { EndpointsPage } from './endpoints/endpoints-page.js';
import { OverviewPage } from './overview/overview-page.js';

const DomainPage = lazyPage(async () => (await import('./settings/owner-page.js')).DomainPage);
const CollectionPage = lazyPage(async () => (await import('./settings/owner-page.js')).CollectionPage);
const ServicesPage = lazyPage(async () => (await import('./services/services-page.js')).ServicesPage);
const ServicePage = lazyPage(async () => (await import('./services/service-page.js')).ServicePage);
const ObjectsPage = lazyPage(async () => (await import('./objects/objects-page.js')).ObjectsPage);
const ImportPage = lazyPage(async () => (await import('./import/import-page.js')).ImportPage);
const ImportRunPage = lazyPage(async () => (await import('./import/import-run-page.js')).ImportRunPage);
const ApplyPage = lazyPage(async () => (await import('./apply/apply-page.js')).ApplyPage);
const ApplyRunPage = lazyPage(async () => (await import('./apply/apply-run-page.js')).ApplyRunPage);
const ExportPage = lazyPage(async () => (await import('./export/export-page.js')).ExportPage);
const BuildsPage = lazyPage(async () => (await import('./builds/builds-page.js')).BuildsPage);
const BuildPage = lazyPage(async () => (await import('./builds/build-page.js')).BuildPage);
const QueuesPage = lazyPage(async () => (await import('./builds/queues-page.js')).QueuesPage);
const LogsPage = lazyPage(async () => (await import('./endpoint/logs/logs-page.js')).LogsPage);
const AlertsPage = lazyPage(async () => (await import('./alerts/alerts-page.js')).AlertsPage);
const AccessPage = lazyPage(async () => (await import('./access/access-page.js')).AccessPage);
const ReferencePage = lazyPage(async () => (await import('./reference/reference-page.js')).ReferencePage);

const PAGES: readonly (readonly [path: string, Content: FunctionComponent<PageProps> | LazyPage])[] = [
  ['/ui', OverviewPage],
  ['/ui/endpoints', EndpointsPage],
  ['/ui/endpoints/:id/:tab?', EndpointPage],
  ['/ui/domains/:id/:section?', DomainPage],
  ['/ui/collections/:id/:section?', CollectionPage],
  ['/ui/services', ServicesPage],
  ['/ui/services/:id', ServicePage],
  ['/ui/objects', ObjectsPage],
  ['/ui/import', ImportPage],
  ['/ui/imports/:id', ImportRunPage],
  ['/ui/apply', ApplyPage],
  ['/ui/applies/:id', ApplyRunPage],
  ['/ui/export', ExportPage],
  ['/ui/builds', BuildsPage],
  ['/ui/builds/:id', BuildPage],
  ['/ui/queues', QueuesPage],
  ['/ui/logs', LogsPage],
  ['/ui/alerts', AlertsPage],
  ['/ui/access/:tab?', AccessPage],
  ['/ui/api/:host?', ReferencePage],
];

export function Pages() {
  return (
    <Switch>
      {PAGES.map(([path, Content]) => (
        <Route key={path} path={path} component={Content} />
      ))}
      <Route>
        <Page title="Nothing here">
          <Empty title="There is no such page">
            <Link href="/ui">Go to the overview</Link>
          </Empty>
        </Page>
      </Route>
    </Switch>
  );
}

/** Begins to load the code of the page at this address, before it is known who looks at it. Shows nothing. */
export function PreloadedPage() {
  return (
    <Switch>
      {PAGES.map(([path, Content]) => (
        <Route key={path} path={path}>
          {(params) => 'preload' in Content && <Preloaded content={Content} params={params} />}
        </Route>
      ))}
    </Switch>
  );
}

function Preloaded({ content, params }: PageProps & { readonly content: LazyPage }) {
  useLayoutEffect(() => content.preload({ params }), [content]);
  return null;
}
