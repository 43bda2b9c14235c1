import { Page } from '../base/page.js';

export function BuildsPage() {
  return <Page title="Builds">…</Page>;
}
