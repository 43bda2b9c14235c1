import type { Endpoint } from '../../generated/routes.js';
export function FiguresTab({ endpoint }: { readonly endpoint: Endpoint }) {
  return <p>{endpoint.name}</p>;
}
