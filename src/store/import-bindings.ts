/** Binds services to the endpoints of an import, as the manifest of its bundle says. */
import { AppError } from '../errors.js';
import type { ServiceBinding } from '../model/imported-parts.js';
import { type BoundService, incrementVersion } from './bindings.js';
import type { Store } from './database.js';

export interface ImportedBindings {
  /** The services whose bindings have changed, with their new versions. */
  readonly bound: readonly BoundService[];
  readonly warnings: readonly string[];
}

/**
 * Endpoints keep a binding that they have under one of the names: an operator has made it.
 * @throws AppError invalid_bundle when there is no service of a name
 */
export async function bindServices(
  tx: Store,
  domain: string,
  endpointIds: readonly string[],
  bindings: readonly ServiceBinding[],
): Promise<ImportedBindings> {
  const bound: BoundService[] = [];
  const warnings: string[] = [];
  const resolved: (ServiceBinding & { readonly serviceId: string })[] = [];
  for (const binding of bindings)
    resolved.push({ ...binding, serviceId: await serviceNamed(tx, domain, binding) });
  // Services are bound in the order of their ids, so that two imports do not wait for each other.
  for (const { poolId, service, serviceId } of resolved.sort((a, b) =>
    a.serviceId < b.serviceId ? -1 : 1,
  )) {
    const { rowCount } = await tx.knex.raw<{ rowCount: number }>(
      `INSERT INTO endpoint_services (endpoint_id, service_id, pool_id)
         SELECT endpoint_id, ?, ? FROM unnest(?::uuid[]) AS endpoint_id ON CONFLICT (endpoint_id, pool_id) DO NOTHING`,
      [serviceId, poolId, [...endpointIds]],
    );
    if (rowCount > 0) bound.push(await incrementVersion(tx, serviceId));
    const others = await tx
      .knex('endpoint_services')
      .where({ pool_id: poolId })
      .whereIn('endpoint_id', [...endpointIds])
      .whereNot({ service_id: serviceId })
      .count<{ count: number }[]>();
    const count = others[0]?.count ?? 0;
    if (count > 0)
      warnings.push(
        `${count} of the endpoints keep another service that is bound as "${poolId}", instead of "${service}"; ` +
          'unbind it to change that (DELETE /api/endpoints/{id}/services/{service_id})',
      );
  }
  return { bound, warnings };
}

async function serviceNamed(
  tx: Store,
  domain: string,
  { poolId, service: name }: ServiceBinding,
): Promise<string> {
  const row = await tx
    .knex<{ id: string; name: string }>('services')
    .where({ name })
    .whereRaw("(domains = '{}' OR ? = ANY(domains))", [domain])
    .first('id');
  if (!row) {
    throw new AppError(
      'invalid_bundle',
      `bindings.${poolId}: there is no service with the name "${name}"; create it first, or remove the binding`,
    );
  }
  return row.id;
}
