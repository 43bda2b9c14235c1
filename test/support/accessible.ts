/** What axe-core finds wrong with a page for people with disabilities: WCAG 2.2 AA, in both themes. */
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import type { Page } from 'playwright-core';

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface Finding {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[];
}

/** Fails with what axe finds, of the whole page as it is shown now. */
export async function expectAccessible(page: Page): Promise<void> {
  const source = await readFile(AXE, 'utf8');
  for (const theme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
    await page.locator(`html[data-theme="${theme}"]`).waitFor();
    await page.evaluate(source);
    const findings = (await page.evaluate(
      // Frames are pages of somebody else.
      `axe.run(document, { runOnly: ${JSON.stringify(TAGS)}, iframes: false }).then((found) => found.violations)`,
    )) as Finding[];
    const told = findings.map(({ id, help, nodes }) => [
      id,
      help,
      ...nodes.map(({ html, failureSummary }) => [html, failureSummary]),
    ]);
    expect(told, `${theme}, ${page.url()}`).to.deep.equal([]);
  }
}

/** Text that would do something if it were ever taken for HTML, a link or a template. */
export const HOSTILE = `<img src=x onerror="document.title='hacked'"><script>document.title='hacked'</script>"'{{7*7}}`;

/** Fails when hostile text was more than text. */
export async function expectUnharmed(page: Page): Promise<void> {
  expect(await page.title()).not.to.include('hacked');
  expect(await page.locator('img[src="x"], main script').count()).to.equal(0);
}
