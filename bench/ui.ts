/**
 * How large is the web UI, and how soon is it there? On a slow processor with an empty cache, and each page of an
 * installation with 10,000 endpoints, 1,000 versions of one of them, and a million lines of log.
 */
import { createHash } from 'node:crypto';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { ONE_FILE } from '../src/model/source-files.js';
import { openDatabase } from '../src/store/database.js';
import { addVersions } from '../src/store/versions.js';
import { eventually } from '../test/support/eventually.js';
import { must, type Stack } from '../test/support/processes.js';
import { launchBrowser } from '../test/support/ui.js';
import { gzippedBytes, loadedFor } from '../test/support/ui-files.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type Benchmark, runAlone } from './support/main.js';
import { writeManyLogEntries } from './support/many-log-entries.js';
import { defineEndpoints } from './support/many-routes.js';
import { median, type Row, round } from './support/report.js';

const ROUNDS = 7;
const ENDPOINTS = 10_000;
const VERSIONS = 1_000;
const ENTRIES = 1_000_000;
const SLOWDOWN = 4;
const LIMIT_MS = 30_000;

interface Point {
  readonly requests: number;
}

/** The pages with what tells that they are of use, besides that nothing is a placeholder any more. */
const PAGES: Readonly<Record<string, string>> = {
  '/ui': 'main h1',
  '/ui/endpoints': 'main [role=listitem], main li',
  '/ui/endpoints?search=resource9999': 'main [role=listitem], main li',
  '/ui/endpoints/ID': '.cm-content',
  '/ui/endpoints/ID/try': 'main form',
  '/ui/endpoints/ID/logs': '[aria-label^="Log entries"] .line',
  '/ui/endpoints/ID/figures': 'main canvas',
  '/ui/endpoints/ID/versions': '.versions li',
  '/ui/endpoints/ID/settings': 'main form',
  '/ui/domains/DOMAIN': 'main form',
  '/ui/collections/COLLECTION': 'main form',
  '/ui/logs': '[aria-label^="Log entries"] .line',
  '/ui/alerts': 'main h1',
  '/ui/services': 'main h1',
  '/ui/services/SERVICE': 'main .facts',
  '/ui/objects': 'main h1',
  '/ui/import': 'main h1',
  '/ui/apply': 'main h1',
  '/ui/export': 'main .filters',
  '/ui/builds': 'main h1',
  '/ui/builds/BUILD': 'main .facts',
  '/ui/queues': 'main iframe',
  '/ui/access': 'main h1',
  '/ui/access/audit': 'main li, main tbody tr',
  '/ui/api': 'main h1',
};

export const ui: Benchmark = async () =>
  withStacks([{}], async (stack) => {
    if (!stack) throw new Error('no stack');
    const ids = await fill(stack);
    const browser = await launchBrowser();
    try {
      return [
        ...(await sizes(browser, stack, ids)),
        ...(await firstVisit(browser, stack)),
        ...(await eachPage(browser, stack, ids)),
      ];
    } finally {
      await browser.close();
    }
  });

/** The ids for the addresses of the pages: `ID` is the endpoint that has the versions and the log. */
type Ids = Readonly<Record<'ID' | 'DOMAIN' | 'COLLECTION' | 'SERVICE' | 'BUILD', string>>;

/** Fills the installation. */
async function fill(stack: Stack): Promise<Ids> {
  const id = await stack.deploy({ path: '/{name}', code: SMALL_JSON });
  await defineEndpoints(stack, ENDPOINTS);
  const store = openDatabase(stack.databaseUrl, () => undefined);
  try {
    for (let number = 2; number <= VERSIONS; number++) {
      const code = `${SMALL_JSON}// ${number}\n`;
      const digest = createHash('sha256').update(code).digest('hex');
      const source = {
        sourceKey: digest,
        code,
        dependencies: {},
        ...ONE_FILE,
        artifact: digest,
        actor: null,
      };
      await addVersions(store, [id], { ...source, message: `The change number ${number}` });
    }
  } finally {
    await store.close();
  }
  for (let sent = 0; sent < 100; sent++) await stack.gateway.get('/ada');
  await eventually(async () => {
    const { points } = (await must(stack.api.get(`/api/series?endpoint_id=${id}`))) as { points: Point[] };
    if (!points.some(({ requests }) => requests > 0)) throw new Error('there are no figures yet');
  });
  await writeManyLogEntries(stack.databaseUrl, { count: ENTRIES, endpointIds: [id] });
  const domain = await create(stack, '/api/domains', { name: 'Shop', host: 'shop.test' });
  const collection = { name: 'Orders', domain_id: domain, base_path: '/orders' };
  const service = { name: 'backend', service_type: 'http', config: { base_url: 'https://example.com' } };
  const [build] = (await must(stack.api.get('/api/builds'))) as { id: string }[];
  if (!build) throw new Error('there is no build');
  return {
    ID: id,
    DOMAIN: domain,
    COLLECTION: await create(stack, '/api/collections', collection),
    SERVICE: await create(stack, '/api/services', service),
    BUILD: build.id,
  };
}

/** @returns its id */
async function create({ api }: Stack, path: string, body: object): Promise<string> {
  return ((await must(api.post(path, body))) as { id: string }).id;
}

async function sizes(browser: Browser, { apiUrl }: Stack, { ID }: Ids): Promise<Row[]> {
  const context = await browser.newContext({ baseURL: apiUrl });
  const first = await loadedFor(await context.newPage(), '/ui', 'main h1');
  const editor = await loadedFor(await context.newPage(), `/ui/endpoints/${ID}`, '.cm-content');
  await context.close();
  const row = (question: string, bytes: number, atMost: number): Row => ({
    question,
    ...{ measured: 'scripts, styles and icon, gzip', value: bytes / 1024, unit: 'KB', bar: { atMost } },
  });
  const more = [...editor.files].filter((file) => !first.files.has(file));
  return [
    row('what a browser loads for the first page of the web UI', await gzippedBytes(first.files), 60),
    row('what it loads beside that for the editor', await gzippedBytes(more), 200),
  ];
}

async function firstVisit(browser: Browser, { apiUrl }: Stack): Promise<Row[]> {
  const painted: number[] = [];
  const usable: number[] = [];
  for (let visit = 0; visit < ROUNDS; visit++) {
    // Nothing is in its cache.
    const context = await browser.newContext({ baseURL: apiUrl });
    const page = await openPage(context, 'main h1', SLOWDOWN);
    await page.goto('/ui');
    usable.push(await usableAt(page));
    painted.push(
      await page.evaluate<number>(`performance.getEntriesByName('first-contentful-paint')[0].startTime`),
    );
    await context.close();
  }
  const on = `processor ${SLOWDOWN} times as slow, nothing cached`;
  const row = (question: string, times: number[], atMost: number): Row => ({
    question: `${question}, ${on}`,
    measured: `median of ${ROUNDS}, slowest ${round(Math.max(...times))} ms`,
    value: median(times),
    unit: 'ms',
    bar: { atMost },
  });
  return [
    row('first contentful paint of the web UI', painted, 1_000),
    row('the overview can be used', usable, 1_500),
  ];
}

async function eachPage(browser: Browser, { apiUrl }: Stack, ids: Ids): Promise<Row[]> {
  const context = await browser.newContext({ baseURL: apiUrl });
  const rows: Row[] = [];
  for (const [path, selector] of Object.entries(PAGES)) {
    const times: number[] = [];
    // The first visit fills the cache of the browser.
    for (let visit = 0; visit <= ROUNDS; visit++) {
      const page = await openPage(context, selector);
      await page.goto(path.replace(/[A-Z]{2,}$|[A-Z]{2,}(?=\/)/, (name) => ids[name as keyof Ids]));
      const time = await usableAt(page);
      if (visit > 0) times.push(time);
      await page.close();
    }
    rows.push({
      question: `${path} can be used, with ${ENDPOINTS} endpoints, ${VERSIONS} versions, ${ENTRIES} lines of log`,
      measured: `median of ${ROUNDS}, slowest ${round(Math.max(...times))} ms`,
      value: median(times),
      unit: 'ms',
      bar: { atMost: 300 },
    });
  }
  await context.close();
  return rows;
}

/** A page that takes the time when an element is there and painted, and no placeholder is. */
async function openPage(context: BrowserContext, selector: string, slowdown = 1): Promise<Page> {
  const page = await context.newPage();
  if (slowdown > 1) {
    const session = await context.newCDPSession(page);
    await session.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
  }
  await page.addInitScript(`
    globalThis.usableAt = new Promise((resolve, reject) => {
      new MutationObserver((_, observer) => {
        if (!document.querySelector(${JSON.stringify(selector)}) || document.querySelector('.skeleton')) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
      }).observe(document, { childList: true, subtree: true });
      setTimeout(() => reject(new Error(location.pathname + ' does not become usable')), ${LIMIT_MS});
    });`);
  return page;
}

/** Milliseconds after the navigation began. */
function usableAt(page: Page): Promise<number> {
  return page.evaluate<number>('globalThis.usableAt');
}

await runAlone(import.meta.url, ui);
