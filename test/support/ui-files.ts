/** How much a page of the web UI loads. */
import { stat } from 'node:fs/promises';
import type { Page } from 'playwright-core';

export interface Loaded {
  /** Paths of files of the web UI. */
  readonly files: ReadonlySet<string>;
  readonly origins: ReadonlySet<string>;
}

/** What is loaded for a page. @param shown selects what tells when it is there */
export async function loadedFor(page: Page, path: string, shown: string): Promise<Loaded> {
  const files = new Set<string>();
  const origins = new Set<string>();
  page.on('request', (request) => {
    const { origin, pathname } = new URL(request.url());
    origins.add(origin);
    if (!pathname.startsWith('/api/')) files.add(pathname);
  });
  await page.goto(path);
  await page.locator(shown).first().waitFor();
  await page.waitForLoadState('load');
  return { files, origins };
}

/** Bytes of these files that a browser gets: compressed with gzip, as far as they are compressed. */
export async function gzippedBytes(files: Iterable<string>): Promise<number> {
  let bytes = 0;
  for (const file of files) {
    if (!file.startsWith('/ui/assets/')) continue;
    const path = file.replace('/ui/', 'ui/dist/');
    bytes += (await stat(`${path}.gz`).catch(() => stat(path))).size;
  }
  return bytes;
}
