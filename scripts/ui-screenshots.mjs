/**
 * `npm run ui:screenshots`: pictures of each page of the web UI, light and dark, on a desktop and a phone, in docs/ui,
 * and the page that shows them. It starts a gateway of its own, fills it (`ui-example.mjs`), and looks. Times and ids
 * in the pictures are replaced by fixed ones, and a picture that hardly differs from the one that is there is left
 * alone: what a commit changes is what has changed. With names, such as `endpoint-code`, only these are made.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildAll } from './compile.mjs';
import { ensureAllPackages, ROOT, requireNode, requireRust } from './prepare.mjs';

const OUT = join(ROOT, 'docs/ui');
const QUALITY = 62;
/** Difference of a color, of 255; less is the noise of the encoder. */
const STRONG_DIFFERENCE = 64;
/**
 * Least share of all pixels that differ so: a word is more, also in a large picture. A chart is of what a run did:
 * where its line goes is no change of the page, so what is within one does not count.
 */
const LEAST_CHANGED = 0.0002;
const VIEWS = [
  { view: 'desktop', viewport: { width: 1280, height: 800 } },
  { view: 'phone', viewport: { width: 360, height: 740 } },
];
const THEMES = ['light', 'dark'];

requireNode();
await requireRust();
await buildAll(ensureAllPackages);
const { startStack } = await import('../dist/test/support/processes.js');
const { startS3Backend } = await import('../dist/test/support/backends/s3.js');
const { stopServer } = await import('../dist/test/support/postgres.js');
const { launchBrowser } = await import('../dist/test/support/ui.js');
const { fillExample } = await import('./ui-example.mjs');
const { stackFiles } = await import('./ui-example-stack.mjs');
const { zipOf } = await import('../dist/test/support/zip.js');

let customers;
const wanted = process.argv.slice(2);
const isWanted = ({ name }) => wanted.length === 0 || wanted.includes(name);
mkdirSync(OUT, { recursive: true });
const storage = await startS3Backend(['files']);
const stack = await startStack({ env: { ALLOW_PRIVATE_URLS: 'true' } });
const browser = await launchBrowser();
try {
  const empty = [{ name: 'first-start', title: 'An empty gateway', path: '/ui' }];
  await takeAll(empty.filter(isWanted), '');
  const { cookie, ids } = await fillExample({ ...stack, objects: storage.config });
  const out = [{ name: 'sign-in', title: 'Signing in', path: '/ui' }];
  await takeAll(out.filter(isWanted), '');
  const pages = pagesOf(ids);
  // What is said of now should not be nothing.
  customers = setInterval(sendSome, 1_000);
  await takeAll(pages.filter(isWanted), cookie);
  if (wanted.length === 0) finish([...empty, ...out, ...pages]);
} finally {
  clearInterval(customers);
  await browser.close();
  await stack.close();
  await storage.remove();
  await stopServer();
}

function pagesOf(ids) {
  const endpoint = `/ui/endpoints/${ids.list}`;
  return [
    { name: 'overview', title: 'Overview', path: '/ui' },
    { name: 'endpoints', title: 'Endpoints', path: '/ui/endpoints' },
    { name: 'palette', title: 'Command palette', path: '/ui/endpoints', prepare: openPalette },
    { name: 'new-endpoint', title: 'A dialog', path: '/ui/endpoints', prepare: click('New endpoint') },
    { name: 'endpoint-code', title: 'Endpoint: code', path: `/ui/endpoints/${ids.search}/code` },
    { name: 'endpoint-try', title: 'Endpoint: try', path: `${endpoint}/try`, prepare: sendTrial },
    { name: 'endpoint-logs', title: 'Endpoint: logs', path: `/ui/endpoints/${ids.place}/logs` },
    { name: 'endpoint-figures', title: 'Endpoint: figures', path: `${endpoint}/figures` },
    { name: 'endpoint-versions', title: 'Endpoint: versions', path: `${endpoint}/versions` },
    { name: 'endpoint-settings', title: 'Endpoint: settings', path: `${endpoint}/settings` },
    { name: 'endpoint-policies', title: 'Endpoint: policies', path: `${endpoint}/settings?section=policies` },
    { name: 'endpoint-crashed', title: 'An endpoint that crashes', path: `/ui/endpoints/${ids.report}/code` },
    { name: 'domain-settings', title: 'Settings of a domain', path: `/ui/domains/${ids.shop}/variables` },
    { name: 'domain-keys', title: 'Keys of a domain', path: `/ui/domains/${ids.shop}/keys` },
    {
      name: 'collection-settings',
      title: 'Settings of a collection',
      path: `/ui/collections/${ids.orders}/policies`,
    },
    { name: 'services', title: 'Services', path: '/ui/services' },
    {
      name: 'service',
      title: 'A service that cannot be reached',
      path: `/ui/services/${ids.cache}`,
      prepare: testService,
    },
    { name: 'objects', title: 'Objects', path: '/ui/objects' },
    { name: 'import', title: 'Import', path: '/ui/import', prepare: previewImport },
    { name: 'import-run', title: 'An import with flaws', path: `/ui/imports/${ids.import}` },
    { name: 'apply', title: 'Apply', path: '/ui/apply', prepare: previewApply },
    { name: 'apply-run', title: 'An apply', path: `/ui/applies/${ids.apply}` },
    {
      name: 'apply-back',
      title: 'Rolling an apply back',
      path: `/ui/applies/${ids.apply}`,
      prepare: click('Roll back …'),
    },
    {
      name: 'export',
      title: 'Export',
      path: '/ui/export?domain=docs.example.com',
      prepare: click('Show them'),
    },
    { name: 'logs', title: 'Logs of all endpoints', path: '/ui/logs' },
    { name: 'alerts', title: 'Alerts', path: '/ui/alerts' },
    { name: 'new-alert', title: 'A new alert', path: '/ui/alerts?new=alert' },
    { name: 'builds', title: 'Builds', path: '/ui/builds' },
    { name: 'build', title: 'A build that failed', path: `/ui/builds/${ids.build}` },
    { name: 'queues', title: 'Queues', path: '/ui/queues' },
    { name: 'access-users', title: 'Access: users', path: '/ui/access/users' },
    { name: 'access-tokens', title: 'Access: tokens', path: '/ui/access/tokens' },
    { name: 'access-sessions', title: 'Access: sessions', path: '/ui/access/sessions' },
    { name: 'access-audit', title: 'Access: audit', path: '/ui/access/audit' },
    { name: 'access-account', title: 'Access: account', path: '/ui/access/account' },
    { name: 'api', title: 'API', path: '/ui/api' },
  ];
}

/** Nobody waits for the answers. */
function sendSome() {
  const headers = { host: 'shop.example.com' };
  for (const path of ['/orders/', '/products/oak'])
    stack.gateway.get(path, { headers }).catch(() => undefined);
}

function click(name) {
  return (page) => page.getByRole('button', { name, exact: true }).first().click();
}

async function sendTrial(page) {
  await click('Send')(page);
  await page.getByRole('region', { name: 'Answer' }).waitFor();
}

async function testService(page) {
  await click('Test')(page);
  await page.locator('button:enabled', { hasText: /^Test$/ }).waitFor();
}

async function openPalette(page) {
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: /^Search/ }).fill('order');
  await page
    .getByRole('option', { name: /orders/ })
    .first()
    .waitFor();
}

async function previewImport(page) {
  const document = readFileSync(join(ROOT, 'examples/petstore/openapi.yaml'), 'utf8');
  await page.getByLabel('Document', { exact: true }).fill(document);
  await page
    .getByText(/\d new/)
    .first()
    .waitFor();
}

async function previewApply(page) {
  await page
    .getByLabel('Choose a file')
    .and(page.locator('input'))
    .setInputFiles({ name: 'docs.zip', mimeType: 'application/zip', buffer: zipOf(stackFiles(2)) });
  await page
    .getByText(/\d new/)
    .first()
    .waitFor();
  await page.getByText('GET docs.example.com/guides/{page}').click();
}

/** All pictures of these pages. @param cookie of the session, empty for nobody's */
async function takeAll(pages, cookie) {
  for (const { view, viewport } of VIEWS)
    for (const theme of THEMES) {
      const context = await browser.newContext({
        ...{ baseURL: stack.apiUrl, viewport, colorScheme: theme, reducedMotion: 'reduce' },
        ...{ locale: 'en-GB', timezoneId: 'Europe/Berlin' },
      });
      const [name, value] = cookie.split('=');
      if (value) await context.addCookies([{ name, value, url: stack.apiUrl }]);
      for (const page of pages) await take(context, page, `${page.name}-${theme}-${view}`);
      await context.close();
    }
}

async function take(context, { path, prepare }, file) {
  const page = await context.newPage();
  page.on('pageerror', (error) => process.stderr.write(`${file}: ${error.stack}\n`));
  await page.goto(path);
  await settle(page);
  await prepare?.(page);
  await settle(page);
  await page.evaluate(fixTexts, {
    stack: new URL(stack.apiUrl).host,
    gateway: new URL(stack.gatewayUrl).host,
  });
  const session = await context.newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  const taken = Buffer.from(data, 'base64');
  const target = join(OUT, `${file}.webp`);
  if (await differs(page, before(target), taken)) writeFileSync(target, taken);
  process.stdout.write(`${file} ${Math.ceil(taken.length / 1024)} KB\n`);
  await page.close();
}

function before(path) {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}

/** Until nothing is loading, and nothing has been drawn anew for a moment. */
async function settle(page) {
  await page.locator('main, .alone').first().waitFor();
  await page.waitForFunction(() => !document.querySelector('.skeleton, main[aria-busy=true]'));
  await page.evaluate(async () => {
    await document.fonts.ready;
    let last = performance.now();
    const observer = new MutationObserver(() => {
      last = performance.now();
    });
    observer.observe(document.body, { subtree: true, childList: true, characterData: true });
    const until = last + 8_000;
    while (performance.now() - last < 700 && performance.now() < until)
      await new Promise((resolve) => setTimeout(resolve, 100));
    observer.disconnect();
  });
}

/** Replaces what is of this machine and this run: ids, ports, ages. Runs in the page. */
function fixTexts({ stack: api, gateway }) {
  const ids = new Map();
  const idOf = (id) => {
    if (!ids.has(id))
      ids.set(id, `${String(ids.size + 1).padStart(8, '0')}${id.slice(8).replaceAll(/[0-9a-f]/g, '0')}`);
    return ids.get(id);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const { parentElement: parent } = node;
    node.data = node.data
      .replaceAll(api, 'gateway.example.com')
      .replaceAll(gateway, 'shop.example.com')
      .replaceAll('http://127.0.0.1:9/', 'https://hooks.example.com/')
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, idOf)
      .replace(/(?<=^(?:Build )?)[0-9a-f]{8}$/, idOf);
    if (parent.closest('time'))
      node.data = node.data
        .replace(/^\d+ (seconds?|minutes?) ago$|^now$/, '2 minutes ago')
        .replace(/\d{1,2} \w{3,4} \d{4}, \d\d:\d\d:\d\d/, '14 Mar 2026, 09:26:53')
        .replace(/^\d\d:\d\d:\d\d\.\d+/, '09:26:53.589');
    if (parent.closest('td, .answer, .log, .facts'))
      node.data = node.data.replaceAll(/\d+(\.\d+)? (ms|s)\b/g, '1.2 $2');
  }
}

/** Whether two pictures differ by more than noise; the page decodes them. */
async function differs(page, old, taken) {
  if (!old) return true;
  const charts = await page.evaluate(() =>
    [...document.querySelectorAll('canvas, .sparkline')].map((chart) =>
      chart.getBoundingClientRect().toJSON(),
    ),
  );
  const decoder = await page.context().newPage();
  await decoder.goto('about:blank');
  const changed = await decoder.evaluate(
    async ({ one, other, charts, strong }) => {
      const pixels = async (text) => {
        const blob = await (await fetch(`data:image/webp;base64,${text}`)).blob();
        const image = await createImageBitmap(blob);
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        context.fillStyle = 'black';
        for (const { x, y, width, height } of charts) context.fillRect(x, y, width, height);
        return context.getImageData(0, 0, image.width, image.height).data;
      };
      const [before, after] = [await pixels(one), await pixels(other)];
      if (before.length !== after.length) return 1;
      let count = 0;
      for (let at = 0; at < before.length; at += 4)
        if ([0, 1, 2].some((color) => Math.abs(before[at + color] - after[at + color]) > strong)) count++;
      return count / (before.length / 4);
    },
    { one: old.toString('base64'), other: taken.toString('base64'), charts, strong: STRONG_DIFFERENCE },
  );
  await decoder.close();
  return changed > LEAST_CHANGED;
}

/** The page that shows them; pictures of pages that are no more go. */
function finish(pages) {
  const files = pages.flatMap(({ name }) =>
    VIEWS.flatMap(({ view }) => THEMES.map((theme) => `${name}-${theme}-${view}.webp`)),
  );
  for (const file of readdirSync(OUT))
    if (file.endsWith('.webp') && !files.includes(file)) rmSync(join(OUT, file));
  const rows = pages.map(({ name, title }) => {
    const cells = VIEWS.flatMap(({ view }) =>
      THEMES.map(
        (theme) =>
          `<img src="${name}-${theme}-${view}.webp" alt="${title}, ${theme}, ${view}" width="${view === 'desktop' ? 360 : 120}">`,
      ),
    );
    return `| ${title} | ${cells.join(' | ')} |`;
  });
  const text = [
    '# The web UI in pictures',
    '',
    '`npm run ui:screenshots` makes them of a gateway that it starts and fills.',
    '',
    '| page | desktop, light | desktop, dark | phone, light | phone, dark |',
    '|---|---|---|---|---|',
    ...rows,
    '',
  ];
  writeFileSync(join(OUT, 'README.md'), text.join('\n'));
}
