/** Endpoints that are redeployed while others are measured. */
import { must, type Stack } from '../../test/support/processes.js';
import { SMALL_JSON } from './handlers.js';

/** Two sources that do the same: each deployment takes the other one. Both have been compiled before. */
const SOURCES = [`${SMALL_JSON}// One.\n`, `${SMALL_JSON}// Two.\n`];

/** An endpoint of these. */
export interface Redeployed {
  readonly id: string;
  deployments: number;
  isBusy: boolean;
}

export async function deployEndpoints({ deploy }: Stack, count: number): Promise<Redeployed[]> {
  const endpoints: Redeployed[] = [];
  for (let at = 0; at < count; at++) {
    const id = await deploy({ path: `/redeployed/${at}`, code: SOURCES[at % 2] ?? '' });
    endpoints.push({ id, deployments: at % 2, isBusy: false });
  }
  return endpoints;
}

/**
 * Runs a measurement while endpoints get other code, are compiled and started: evenly, so many of them each second.
 * @throws Error when they were fewer
 */
export async function whileRedeploying<T>(
  stack: Stack,
  endpoints: readonly Redeployed[],
  perSecond: number,
  measure: () => Promise<T>,
): Promise<T> {
  const underWay = new Set<Promise<void>>();
  let failure: unknown;
  let turn = 0;
  const timer = setInterval(() => {
    const endpoint = endpoints[turn++ % endpoints.length];
    if (!endpoint || endpoint.isBusy) {
      failure ??= new Error(`This machine is too slow for ${perSecond} redeployments a second.`);
      return;
    }
    const redeployment = redeploy(stack, endpoint).catch((error: unknown) => {
      failure ??= error;
    });
    underWay.add(redeployment);
    void redeployment.then(() => underWay.delete(redeployment));
  }, 1_000 / perSecond);
  try {
    const result = await measure();
    if (failure !== undefined) throw failure;
    return result;
  } finally {
    clearInterval(timer);
    await Promise.all(underWay);
  }
}

async function redeploy({ api }: Stack, endpoint: Redeployed): Promise<void> {
  endpoint.isBusy = true;
  const code = SOURCES[++endpoint.deployments % 2];
  await must(api.put(`/api/endpoints/${endpoint.id}`, { code }));
  await must(api.post(`/api/endpoints/${endpoint.id}/compile`));
  await must(api.post(`/api/endpoints/${endpoint.id}/start`));
  endpoint.isBusy = false;
}
