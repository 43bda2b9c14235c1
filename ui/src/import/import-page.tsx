import { Page } from '../base/page.js';

export function ImportPage() {
  return <Page title="Import">…</Page>;
}
