import type { Endpoint } from '../../generated/routes.js';

export function CodeTab({ endpoint }: { readonly endpoint: Endpoint }) {
  return <p class="muted">{endpoint.name}</p>;
}
