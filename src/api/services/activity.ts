/**
 * The operations activate and deactivate: write the desired state, and wait until every actor host has reconciled it.
 */
import { AppError, requireFound } from '../../errors.js';
import { type ServiceObservation, setActive, setInactive } from '../../store/service-activity.js';
import { findService, type Service } from '../../store/services.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { awaitHosts, liveActorHosts } from './service-hosts.js';

/** An actor host tries to connect for up to 5 s before it reports a failure. */
const ACTIVATION_MS = 15_000;
/** Time for the hosts to notice, in addition to the limit of active calls. */
const NOTICE_MS = 5_000;

/** A service, and the result of the operation. */
interface Activity {
  readonly service: Service;
  /** What has become of it, for people. */
  readonly message: string;
}

/** Activates a service on all actor hosts, whether or not its backend can be reached. */
export async function activateService(deps: ApiDependencies, id: string): Promise<Activity> {
  requireEnabled(requireFound(await findService(deps.store, id), 'service', id));
  const hosts = await liveActorHosts(deps);
  if (hosts.length === 0) {
    const message = 'No actor host is alive that could run the service; start the `actor-host` process.';
    throw new AppError('no_actor_host', message);
  }
  const service = requireFound(await setActive(deps.store, id), 'service', id);
  // It may have been disabled meanwhile.
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
  const failed = seen?.find(({ state }) => state === 'failed');
  if (failed) return `Active, but it has failed: ${failed.message}`;
  const away = seen?.find(({ state }) => state !== 'connected');
  if (!seen) return 'Active; the actor hosts have not yet reported how it stands.';
  if (away)
    return `Active, but the backend cannot be reached yet; it is tried again by itself: ${away.message}`;
  return seen[0]?.message ?? 'Active.';
}

/** Deactivates a service on all actor hosts; active calls finish first. */
export async function deactivateService(deps: ApiDependencies, id: string): Promise<Activity> {
  const hosts = await liveActorHosts(deps);
  const outcome = await setInactive(deps.store, id);
  const { service, wasActive } = requireFound(outcome, 'service', id);
  await awaitInactive(deps, hosts, service);
  return {
    service,
    message: wasActive ? 'Deactivated; all calls under way have finished.' : 'It was not active.',
  };
}

/**
 * Waits until no host has the service active, whichever request deactivated it.
 * @throws AppError when active calls take too long
 */
export async function awaitInactive(
  deps: ApiDependencies,
  hosts: readonly string[],
  service: Service,
): Promise<void> {
  // There are no observations of a service that was never changed or activated.
  if (service.version === 1) return;
  const seen = await awaitHosts(deps, hosts, service, deps.config.REQUEST_TIMEOUT_MS + NOTICE_MS);
  if (seen) return;
  const message = `The service "${service.name}" is being deactivated, but calls of it are still under way.`;
  throw new AppError('wait_timeout', message);
}
