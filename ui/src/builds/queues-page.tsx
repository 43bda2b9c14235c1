import { Page } from '../base/page.js';

export function QueuesPage() {
  return <Page title="Queues">…</Page>;
}
