/** Rows of endpoints in little memory: a gateway keeps all of them, and there may be very many that nobody calls. */
import type { Deployed, RoutedEndpoint } from '../store/endpoint-runs.js';

/** Texts that are kept to be shared; with more, they begin anew. */
const MAX_SHARED = 10_000;
const shared = new Map<string, string>();

/** The same row, whose texts are shared with others that have the same, and without what a driver left in it. */
export function compactEndpoint(row: RoutedEndpoint): RoutedEndpoint {
  return {
    id: row.id,
    version: row.version,
    domain: share(row.domain),
    method: share(row.method),
    route: row.route,
    routed: row.routed,
    limits: row.limits,
    domain_policies: shareIfAny(row.domain_policies),
    collection_policies: shareIfAny(row.collection_policies),
    own_policies: shareIfAny(row.own_policies),
    domain_id: shareIfAny(row.domain_id),
    collection_id: shareIfAny(row.collection_id),
    deployment: row.deployment && compactDeployment(row.deployment),
    environment: row.environment,
    stopped: row.stopped,
    failed: row.failed,
  };
}

function compactDeployment({ id, targets, sticky, request_id, confirmed }: Deployed): Deployed {
  const compacted = targets.map(({ version, percent, artifact }) => ({
    version,
    percent,
    artifact: share(artifact),
  }));
  return { id, targets: compacted, sticky, request_id, confirmed };
}

function shareIfAny(text: string | null): string | null {
  return text === null ? null : share(text);
}

function share(text: string): string {
  const known = shared.get(text);
  if (known !== undefined) return known;
  if (shared.size >= MAX_SHARED) shared.clear();
  shared.set(text, text);
  return text;
}
