import { Page } from '../base/page.js';

export function AccessPage() {
  return <Page title="Access">…</Page>;
}
