import type { Endpoint } from '../../generated/routes.js';

export function VersionsTab({ endpoint }: { readonly endpoint: Endpoint }) {
  return <p class="muted">{endpoint.name}</p>;
}
