/** The operations activate and deactivate: write what should be, and wait until every actor host has acted on it. */
import { AppError } from '../../errors.js';
import { found } from '../../found.js';
import { desireActive, desireInactive, type ServiceObservation } from '../../store/service-activity.js';
import { findService, type Service } from '../../store/services.js';
import type { ApiDependencies } from '../dependencies.js';
import { awaitHosts, liveActorHosts } from '../service-hosts.js';

/** An actor host tries to connect for up to 5 s before it says that it cannot. */
const ACTIVATION_MS = 15_000;
/** Beyond what calls under way may take: for the hosts to notice. */
const NOTICE_MS = 5_000;

/** A service, and what became of it. */
interface Activity {
  readonly service: Service;
  /** For people. */
  readonly message: string;
}

/** Makes a service active on all actor hosts, whether or not its backend can be reached at the moment. */
export async function activateService(deps: ApiDependencies, id: string): Promise<Activity> {
  requireEnabled(found(await findService(deps.store, id), 'service', id));
  const hosts = await liveActorHosts(deps);
  if (hosts.length === 0) {
    const message = 'No actor host is alive that could run the service; start the `actor-host` process.';
    throw new AppError('no_actor_host', message);
  }
  const service = found(await desireActive(deps.store, id), 'service', id);
  // Disabled in the meantime.
  requireEnabled(service);
  const seen = await awaitHosts(deps, hosts, service, ACTIVATION_MS);
  return { service, message: activationMessage(seen) };
}

function requireEnabled({ enabled, name }: Service): void {
  if (enabled) return;
  throw new AppError(
    'service_disabled',
    `The service "${name}" is disabled; enable it before you activate it.`,
  );
}

function activationMessage(seen: readonly ServiceObservation[] | undefined): string {
  if (seen?.length === 0)
    return 'Active as soon as an `actor-host` process runs: those there were have ended.';
  const away = seen?.find(({ state }) => state !== 'connected');
  if (!seen) return 'Active; the actor hosts have not yet reported how it stands.';
  if (away)
    return `Active, but the backend cannot be reached yet; it is tried again by itself: ${away.message}`;
  return seen[0]?.message ?? 'Active.';
}

/** Ends a service on all actor hosts: calls under way finish first. */
export async function deactivateService(deps: ApiDependencies, id: string): Promise<Activity> {
  const hosts = await liveActorHosts(deps);
  const outcome = await desireInactive(deps.store, id);
  const { service, wasActive } = found(outcome, 'service', id);
  await awaitInactive(deps, hosts, service);
  return {
    service,
    message: wasActive ? 'Deactivated; all calls under way have finished.' : 'It was not active.',
  };
}

/**
 * Waits until a service that is no longer desired is active nowhere, whoever it was that asked for that first.
 * @throws AppError when calls under way take too long
 */
export async function awaitInactive(
  deps: ApiDependencies,
  hosts: readonly string[],
  service: Service,
): Promise<void> {
  // Of a service that has never been changed nor activated, nobody has anything to report.
  if (service.version === 1) return;
  const seen = await awaitHosts(deps, hosts, service, deps.config.REQUEST_TIMEOUT_MS + NOTICE_MS);
  if (seen) return;
  const message = `The service "${service.name}" is being deactivated, but calls of it are still under way.`;
  throw new AppError('wait_timeout', message);
}
