import type { Endpoint } from '../../generated/routes.js';
export function SettingsTab({ endpoint }: { readonly endpoint: Endpoint }) {
  return <p>{endpoint.name}</p>;
}
