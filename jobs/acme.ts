/**
 * Certificates by ACME: finds domains that need one, and orders it. Rows say what is due, and when; the queue only
 * spreads the work.
 */
import type { Config } from '../src/config.js';
import { toError } from '../src/errors.js';
import { checkCertificate } from '../src/model/certificate.js';
import type { AcmeJob } from '../src/queues/jobs.js';
import type { Queues } from '../src/queues/queues.js';
import {
  type ClaimedOrder,
  claimOrder,
  dueOrders,
  failOrder,
  saveOrdered,
  updateAccount,
} from '../src/store/acme.js';
import { dropExpiredChallenges } from '../src/store/acme-challenges.js';
import { type AcmeOrderContext, type IssuedCertificate, orderCertificate } from './acme-order.js';
import type { ConsumedQueue } from './consume-in-turns.js';

/** Orders that are put on the queue in one look. */
const AT_A_TIME = 100;
/** These jobs wait for ACME servers. */
const ORDERS_AT_A_TIME = 4;
/** All of an order; it is given up long before another worker takes it. */
const ORDER_LIMIT_MS = 4 * 60_000;
const LEASE_MS = 6 * 60_000;
/**
 * Pauses after a failure, the last one again and again: public servers take few failed orders of a host in an hour, and
 * what is wrong, such as an address in the DNS, has to be put right by somebody.
 */
const RETRIES_MS = [30_000, 120_000, 600_000, 1_800_000, 3_600_000, 10_800_000, 21_600_000, 43_200_000];

export interface OrderContext extends AcmeOrderContext {
  /** An order that takes longer is given up, milliseconds. */
  readonly orderLimitMs: number;
}

type AcmeSettings = Pick<Config, 'ACME_DIRECTORY_URL' | 'ACME_EMAIL' | 'ACME_CHALLENGE'>;

export interface AcmeContext extends OrderContext {
  readonly queues: Queues;
}

/** What ordering needs; undefined when the configuration names no server. */
export function acmeContext(
  { ACME_DIRECTORY_URL: directory, ACME_EMAIL: email, ACME_CHALLENGE: challengeType }: AcmeSettings,
  common: Pick<AcmeContext, 'store' | 'changes' | 'queues' | 'secrets' | 'log'>,
): AcmeContext | undefined {
  if (directory === undefined) return undefined;
  return { ...common, directory, email, challengeType, orderLimitMs: ORDER_LIMIT_MS };
}

/** The queue of orders, as a worker consumes it. */
export function acmeQueue(context: OrderContext): ConsumedQueue<'acme'> {
  return { name: 'acme', slots: ORDERS_AT_A_TIME, work: (job) => runOrder(job, context) };
}

/** Queues orders for the domains that need a certificate now. */
export async function orderDue({ store, queues, directory }: AcmeContext): Promise<void> {
  await dropExpiredChallenges(store);
  // Those that are on the queue already are not put on it again: a try is one job.
  for (const { domain_id, ticket } of await dueOrders(store, directory, AT_A_TIME))
    await queues.enqueue('acme', { domainId: domain_id, ticket });
}

/** The job `acme`: tries once to order a certificate. It is due again later, should this worker be lost meanwhile. */
export async function runOrder({ domainId, ticket }: AcmeJob, context: OrderContext): Promise<void> {
  const { store, directory, orderLimitMs, log } = context;
  const claimed = await claimOrder(store, { domain_id: domainId, ticket }, directory, LEASE_MS);
  if (!claimed) return;
  const { host } = claimed;
  const limit = new AbortController();
  const late = new Error(`The order has not ended within ${orderLimitMs / 1000} seconds`);
  const timer = setTimeout(() => limit.abort(late), orderLimitMs);
  try {
    const issued = await orderCertificate(claimed, context, limit.signal);
    await save(claimed, issued, context);
  } catch (thrown) {
    const { message } = toError(thrown);
    const retryMs = RETRIES_MS[Math.min(claimed.failures, RETRIES_MS.length - 1)] ?? 0;
    // The server may have forgotten the account: the next try asks for it.
    await updateAccount(store, directory, { url: null, email: null });
    await failOrder(store, claimed, message, retryMs);
    const fields = { host, domain_id: domainId, reason: message, retry_seconds: retryMs / 1000 };
    log.warn(fields, 'a certificate could not be ordered; it is tried again');
  } finally {
    clearTimeout(timer);
  }
}

async function save(order: ClaimedOrder, issued: IssuedCertificate, context: OrderContext): Promise<void> {
  const { store, secrets, directory, log } = context;
  const { host } = order;
  const checked = checkCertificate({ certificate: issued.chain, private_key: issued.key }, host);
  const key_encrypted = secrets.seal(issued.key);
  const isSaved = await saveOrdered(store, order, { ...checked, key_encrypted, ordered_from: directory });
  if (isSaved) log.info({ host, expires_at: checked.expires_at }, 'a certificate was ordered');
  else log.info({ host }, 'a certificate that was ordered is not wanted any more');
}
