import { Page } from '../base/page.js';

export function EndpointPage() {
  return <Page title="Endpoint">…</Page>;
}
