import { Page } from '../base/page.js';

export function ServicesPage() {
  return <Page title="Services">…</Page>;
}
