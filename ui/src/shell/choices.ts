/** What the palette offers besides endpoints: pages, parts of the endpoint that is open, objects, and commands. */

import { get } from '../api/client.js';
import { may, me, signOut } from '../api/session.js';
import { chooseTheme } from '../base/theme.js';
import { failed } from '../base/toasts.js';
import { rollBack } from '../endpoint/serve.js';
import { visibleTabs } from '../endpoint/tabs.js';
import type { Collection, Domain, Routing, Service } from '../generated/routes.js';
import { visiblePlaces } from './places.js';

/** Leads to a page, or does something. */
export interface Choice {
  /** The same for the same choice, whatever else is found. */
  readonly key: string;
  readonly name: string;
  /** More about it, such as the name of an endpoint. */
  readonly also?: string;
  readonly kind: string;
  readonly to?: string;
  readonly run?: () => void;
}

/** @param location of the page that is open */
export function fixedChoices(location: string): readonly Choice[] {
  const [, endpoint] = /^\/ui\/endpoints\/([^/]+)/.exec(location) ?? [];
  return [
    ...(endpoint === undefined
      ? []
      : [
          ...visibleTabs().map(({ name, label }) =>
            page(`${label} of this endpoint`, `/ui/endpoints/${endpoint}/${name}`, 'Tab'),
          ),
          ...(may('endpoints:deploy')
            ? [command('Roll back this endpoint', () => rollBackOpen(endpoint))]
            : []),
        ]),
    ...visiblePlaces().map(({ name, also, to }) => ({ ...page(name, to, 'Page'), ...(also && { also }) })),
    ...commands(),
  ];
}

/** Rolls back to what served before; the message offers to undo it. */
async function rollBackOpen(id: string): Promise<void> {
  await rollBack(await get('GET /api/endpoints/{id}', { params: { id } }));
}

function command(name: string, run: () => unknown): Choice {
  const tell = async () => run();
  return { key: `command ${name}`, name, kind: 'Command', run: () => void tell().catch(failed) };
}

function commands(): readonly Choice[] {
  return [
    ...(may('endpoints:write') ? [page('New endpoint', '/ui/endpoints?new=endpoint', 'Command')] : []),
    ...(may('services:write') ? [page('New service', '/ui/services?new=postgres', 'Command')] : []),
    ...(may('alerts:write') ? [page('New alert', '/ui/alerts?new=alert', 'Command')] : []),
    command('Light colours', () => chooseTheme('light')),
    command('Dark colours', () => chooseTheme('dark')),
    command('Colours as the system', () => chooseTheme('system')),
    ...(me.value?.user ? [command('Sign out', signOut)] : []),
  ];
}

export const serviceChoice = ({ id, name }: Service) => page(name, `/ui/services/${id}`, 'Service');
export const domainChoice = ({ id, host }: Domain) => page(host, `/ui/domains/${id}`, 'Domain');
export const collectionChoice = ({ id, name }: Collection) =>
  page(name, `/ui/collections/${id}`, 'Collection');

/** The endpoint that answers a URL. */
export const routeChoice = ({ endpoint_id: id, method, route }: NonNullable<Routing['match']>): Choice => ({
  ...page(`${method} ${route}`, `/ui/endpoints/${id}`, 'Answers it'),
  key: `route ${id}`,
});

function page(name: string, to: string, kind: string): Choice {
  return { key: to, name, to, kind };
}
