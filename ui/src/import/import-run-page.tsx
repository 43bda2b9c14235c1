import { Page } from '../base/page.js';

export function ImportRunPage() {
  return <Page title="Import">…</Page>;
}
