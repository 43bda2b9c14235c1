/** Settles deployments and crash loops whose process was lost, and forgets the oldest history. */
import type { Config } from '../src/config.js';
import type { LifecycleDependencies } from '../src/lifecycle/lifecycle-dependencies.js';
import { settleDeployment } from '../src/lifecycle/run.js';
import type { Store } from '../src/store/database.js';
import { pendingDeployments, pruneDeployments } from '../src/store/deployments.js';
import { endCrashLoops } from '../src/store/endpoint-runs.js';
import { pruneJobs } from '../src/store/jobs.js';
import { dropUnusedSourceFiles } from '../src/store/source-files.js';
import { pruneVersions } from '../src/store/versions.js';
import type { Logger } from '../src/util/log.js';

/** Whoever waits for a deployment settles it as soon as it can be; nobody may wait for older ones. */
const UNSETTLED_MS = 2_000;

/**
 * One run: deployments that gateways have acted on are confirmed or reverted, as by the request that asked for them.
 */
export async function recoverDeployments(lifecycle: LifecycleDependencies, log: Logger): Promise<void> {
  for (const deployment of await pendingDeployments(lifecycle.store)) {
    const { id, endpoint_id, age_ms } = deployment;
    if (age_ms < UNSETTLED_MS) continue;
    if (await settleDeployment(lifecycle, endpoint_id, deployment, age_ms))
      log.warn({ endpoint_id, deployment_id: id }, 'deployment was settled that nobody waited for');
  }
}

/** One run: crash loops that are over, and whose gateway cannot say so any more. */
export async function recoverCrashLoops(store: Store, log: Logger): Promise<void> {
  for (const endpoint_id of await endCrashLoops(store))
    log.info({ endpoint_id }, 'a crash loop is over: the endpoint runs on other gateways');
}

/**
 * Deletes the oldest versions and deployments of endpoints that have more than the settings say, queued requests that
 * ended long ago, and contents of files that no source has any more.
 */
export async function tidyHistory(
  store: Store,
  config: Pick<Config, 'VERSIONS_KEPT' | 'DEPLOYMENTS_KEPT' | 'JOBS_KEPT_HOURS'>,
  log: Logger,
): Promise<void> {
  const deleted = {
    versions: await pruneVersions(store, config.VERSIONS_KEPT),
    deployments: await pruneDeployments(store, config.DEPLOYMENTS_KEPT),
    jobs: await pruneJobs(store, config.JOBS_KEPT_HOURS),
    source_files: await dropUnusedSourceFiles(store),
  };
  if (Object.values(deleted).some((count) => count > 0)) log.info(deleted, 'old history deleted');
}
