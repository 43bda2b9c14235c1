import { Page } from '../base/page.js';

export function EndpointsPage() {
  return <Page title="Endpoints">…</Page>;
}
