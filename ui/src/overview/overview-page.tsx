import { Page } from '../base/page.js';

export function OverviewPage() {
  return <Page title="Overview">…</Page>;
}
