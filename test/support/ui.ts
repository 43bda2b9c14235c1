/** The web UI in a real browser, Debian's Chromium, as tests use it. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import { expect } from 'chai';
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';

export interface Ui {
  /** A new window. It fails the test that closes it when its page has reported an error. */
  open(path: string, options?: BrowserContextOptions): Promise<UiPage>;
  close(): Promise<void>;
}

export interface UiPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** What the page has reported: errors of scripts, and of its content security policy. */
  readonly problems: readonly string[];
  /** Fails when there was a problem. */
  close(): Promise<void>;
}

/** Debian's Chromium, as the tests install it. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
}

/** Starts a browser. @param origin of the management API */
export async function openBrowser(origin: string): Promise<Ui> {
  const browser = await launchBrowser();
  return {
    open: async (path, options = {}) => {
      const context = await browser.newContext({ baseURL: origin, ...options });
      const page = await context.newPage();
      const problems: string[] = [];
      page.on('pageerror', (error) => problems.push(error.stack ?? error.message));
      page.on('console', (message) => {
        // A refused request is shown by the page; the browser also reports it.
        const isRequest = message.text().startsWith('Failed to load resource');
        if (message.type() === 'error' && !isRequest) problems.push(message.text());
      });
      await page.goto(path);
      const close = async () => {
        await context.close();
        expect(problems).to.deep.equal([]);
      };
      return { page, context, problems, close };
    },
    close: () => browser.close(),
  };
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Fails with what axe finds on a page, by the rules of WCAG 2.2 A and AA, in both themes. */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(await readFile(AXE, 'utf8'));
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme });
    const found = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run: (options: object) => Promise<AxeResults> } };
      const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];
      const { violations } = await axe.run({ runOnly: tags });
      return violations.map(({ id, nodes }) => ({
        id,
        where: nodes.map(({ target, failureSummary }) => `${target.join(' ')}: ${failureSummary}`),
      }));
    });
    expect(found, `${page.url()} in ${theme}`).to.deep.equal([]);
  }
}

/** Fails when a page is wider than the window: it would scroll sideways. */
export async function expectFits(page: Page): Promise<void> {
  const [width, window] = await page.evaluate<[number, number]>(
    '[document.documentElement.scrollWidth, innerWidth]',
  );
  expect(width, `width of ${page.url()}`).to.be.at.most(window);
}
