import { Page } from '../base/page.js';

export function ServicePage() {
  return <Page title="Service">…</Page>;
}
