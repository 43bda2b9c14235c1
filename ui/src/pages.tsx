/** Which page is at which address. The first two come with the application, the others when they are opened. */
import { Link, Route, Switch } from 'wouter-preact';
import { later } from './base/later.js';
import { Empty } from './base/notices.js';
import { Page } from './base/page.js';
import { EndpointsPage } from './endpoints/endpoints-page.js';
import { OverviewPage } from './overview/overview-page.js';

const EndpointPage = later(async () => (await import('./endpoint/endpoint-page.js')).EndpointPage);
const DomainPage = later(async () => (await import('./settings/owner-page.js')).DomainPage);
const CollectionPage = later(async () => (await import('./settings/owner-page.js')).CollectionPage);
const ServicesPage = later(async () => (await import('./services/services-page.js')).ServicesPage);
const ServicePage = later(async () => (await import('./services/service-page.js')).ServicePage);
const ObjectsPage = later(async () => (await import('./objects/objects-page.js')).ObjectsPage);
const ImportPage = later(async () => (await import('./import/import-page.js')).ImportPage);
const ImportRunPage = later(async () => (await import('./import/import-run-page.js')).ImportRunPage);
const BuildsPage = later(async () => (await import('./builds/builds-page.js')).BuildsPage);
const BuildPage = later(async () => (await import('./builds/build-page.js')).BuildPage);
const QueuesPage = later(async () => (await import('./builds/queues-page.js')).QueuesPage);
const AccessPage = later(async () => (await import('./access/access-page.js')).AccessPage);
const ReferencePage = later(async () => (await import('./reference/reference-page.js')).ReferencePage);

export function Pages() {
  return (
    <Switch>
      <Route path="/ui" component={OverviewPage} />
      <Route path="/ui/endpoints" component={EndpointsPage} />
      <Route path="/ui/endpoints/:id/:tab?" component={EndpointPage} />
      <Route path="/ui/domains/:id/:section?" component={DomainPage} />
      <Route path="/ui/collections/:id/:section?" component={CollectionPage} />
      <Route path="/ui/services" component={ServicesPage} />
      <Route path="/ui/services/:id" component={ServicePage} />
      <Route path="/ui/objects" component={ObjectsPage} />
      <Route path="/ui/import" component={ImportPage} />
      <Route path="/ui/imports/:id" component={ImportRunPage} />
      <Route path="/ui/builds" component={BuildsPage} />
      <Route path="/ui/builds/:id" component={BuildPage} />
      <Route path="/ui/queues" component={QueuesPage} />
      <Route path="/ui/access/:tab?" component={AccessPage} />
      <Route path="/ui/api/:host?" component={ReferencePage} />
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
