import { Page } from '../base/page.js';

export function ObjectsPage() {
  return <Page title="Objects">…</Page>;
}
