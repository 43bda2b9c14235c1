/** The web UI in a real browser, Debian's Chromium, as tests use it. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
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
export function launchBrowser(more: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-dev-shm-usage', ...more],
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

/** Fails when a page is wider than the window: it would scroll sideways. */
export async function expectFits(page: Page): Promise<void> {
  const [width, window] = await page.evaluate<[number, number]>(
    '[document.documentElement.scrollWidth, innerWidth]',
  );
  expect(width, `width of ${page.url()}`).to.be.at.most(window);
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const ALL_RULES = {
  type: 'tag',
  values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
};
/** What can differ between the themes, which only have other colours. */
const COLOUR_RULES = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/**
 * Fails with what axe finds wrong with a page for people with disabilities, as it is shown now: WCAG 2.2 AA, in both
 * themes.
 */
export async function expectAccessible(page: Page): Promise<void> {
  await page.evaluate(await readFile(AXE, 'utf8'));
  for (const [theme, rules] of [
    ['light', ALL_RULES],
    ['dark', COLOUR_RULES],
  ] as const) {
    // A colour that is on its way to another has another contrast.
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.locator(`html[data-theme="${theme}"]`).waitFor();
    const findings = (await page.evaluate(
      // Frames are pages of somebody else.
      `axe.run(document, { runOnly: ${JSON.stringify(rules)}, iframes: false }).then((found) => found.violations)`,
    )) as Finding[];
    const told = findings.map(({ id, help, nodes }) => [
      id,
      help,
      ...nodes.map(({ html, failureSummary }) => [html, failureSummary]),
    ]);
    expect(told, `${theme}, ${page.url()}`).to.deep.equal([]);
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
}

/** Text that would do something if it were ever taken for HTML, a link or a template. */
export const HOSTILE = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>"'{{7*7}}`;

/** Fails when hostile text was more than text. */
export async function expectUnharmed(page: Page): Promise<void> {
  expect(await page.title()).not.to.include('hacked');
  expect(await page.locator('img[src="x"], main script').count()).to.equal(0);
}
