/** The handlers in `examples/`, deployed as they are. */
import { readFile } from 'node:fs/promises';
import type { ServiceType } from '../../src/service-configs.js';
import type { Stack } from './processes.js';
import { bind } from './test-services.js';

export const EXAMPLES_FOLDER = new URL('../../../examples/', import.meta.url);

interface Definition {
  readonly endpoint?: { readonly path: string };
  readonly endpoints?: readonly { readonly path: string }[];
  /** What has to be bound for it to work. */
  readonly services?: readonly { readonly pool_id: string; readonly service_type: ServiceType }[];
}

/**
 * Deploys all endpoints of an example, and binds the services it needs.
 * @param serviceOf the id of a service of this type; called once for each that has to be bound
 */
export async function deployExample(
  stack: Stack,
  name: string,
  serviceOf: (type: ServiceType) => Promise<string>,
): Promise<void> {
  const read = (file: string) => readFile(new URL(`${name}/${file}`, EXAMPLES_FOLDER), 'utf8');
  const { endpoint, endpoints = [], services = [] } = JSON.parse(await read('endpoint.json')) as Definition;
  const code = await read('handler.rs');
  const bound: [poolId: string, serviceId: string][] = [];
  for (const { pool_id, service_type } of services) bound.push([pool_id, await serviceOf(service_type)]);
  for (const each of endpoint ? [endpoint] : endpoints) {
    const id = await stack.deploy({ ...each, code });
    for (const [poolId, serviceId] of bound) await bind(stack.api, id, serviceId, poolId);
  }
}
