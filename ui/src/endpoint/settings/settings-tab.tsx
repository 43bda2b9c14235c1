import type { Endpoint } from '../../generated/routes.js';

interface Props {
  readonly endpoint: Endpoint;
}

export function SettingsTab({ endpoint }: Props) {
  return <p class="muted">{endpoint.name}</p>;
}
