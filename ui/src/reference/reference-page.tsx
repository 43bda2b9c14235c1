import { Page } from '../base/page.js';

export function ReferencePage() {
  return <Page title="API">…</Page>;
}
