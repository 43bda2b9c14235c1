/** The services bound to each endpoint, by name, in memory: every call of a handler is looked up here. */
import type { HostedBinding } from '../store/service-activity.js';

export class BindingTable {
  readonly #byEndpoint = new Map<string, Map<string, string>>();
  readonly #byService = new Map<string, readonly HostedBinding[]>();

  /** The id of the service that is bound to an endpoint under this name. */
  find(endpointId: string, poolId: string): string | undefined {
    return this.#byEndpoint.get(endpointId)?.get(poolId);
  }

  /** The services that are bound to an endpoint. */
  servicesOf(endpointId: string): string[] {
    return [...(this.#byEndpoint.get(endpointId)?.values() ?? [])];
  }

  /** All bindings of a service. */
  of(serviceId: string): readonly HostedBinding[] {
    return this.#byService.get(serviceId) ?? [];
  }

  /** Replaces all bindings of a service. */
  replace(serviceId: string, bindings: readonly HostedBinding[]): void {
    for (const { endpoint_id, pool_id } of this.#byService.get(serviceId) ?? []) {
      const pools = this.#byEndpoint.get(endpoint_id);
      // The name may be bound to another service by now.
      if (pools?.get(pool_id) === serviceId) pools.delete(pool_id);
      if (pools?.size === 0) this.#byEndpoint.delete(endpoint_id);
    }
    if (bindings.length === 0) this.#byService.delete(serviceId);
    else this.#byService.set(serviceId, bindings);
    for (const { endpoint_id, pool_id } of bindings) {
      const pools = this.#byEndpoint.get(endpoint_id) ?? new Map<string, string>();
      pools.set(pool_id, serviceId);
      this.#byEndpoint.set(endpoint_id, pools);
    }
  }
}
