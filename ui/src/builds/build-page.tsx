import { Page } from '../base/page.js';

export function BuildPage() {
  return <Page title="Build">…</Page>;
}
