/** Alerts: finds out what has begun and what is over, and tells it with webhooks. */

import { toError } from '../src/errors.js';
import type { AlertJob } from '../src/queues/jobs.js';
import type { Queues } from '../src/queues/queues.js';
import type { SecretBox } from '../src/secrets/secret-box.js';
import {
  type ClaimedDelivery,
  claimDelivery,
  type DeliveryResult,
  deleteOldAlertEvents,
  deliveriesOfWaitingOwners,
  dueDeliveries,
  ownerOfDelivery,
  settleDelivery,
  updateAlertEvents,
} from '../src/store/alert-events.js';
import type { Store } from '../src/store/database.js';
import type { Logger } from '../src/util/log.js';
import { sendWebhook } from '../src/webhooks/webhook.js';
import type { SharedQueue } from './consume-in-turns.js';

/** These jobs wait for the receivers of webhooks. */
const WEBHOOKS_AT_A_TIME = 8;
const AT_A_TIME = 200;
/** Pauses before the attempts after the first one. */
const RETRIES_MS = [5_000, 30_000, 120_000, 600_000, 1_800_000, 3_600_000, 10_800_000];

export interface AlertContext {
  readonly store: Store;
  readonly queues: Queues;
  readonly secrets: SecretBox;
  /** Whether webhooks may go to addresses that are not of the internet. */
  readonly allowsPrivate: boolean;
  readonly log: Logger;
}

/** The queue of webhooks, as a worker consumes it. */
export function alertQueue(context: AlertContext): SharedQueue<'alert'> {
  const { store } = context;
  return {
    ...{ name: 'alert', slots: WEBHOOKS_AT_A_TIME },
    work: (job) => sendAlert(job, context),
    ownerOf: ({ deliveryId }) => ownerOfDelivery(store, deliveryId),
    waiting: async (sinceMs, limit, busy) => {
      const due = await deliveriesOfWaitingOwners(store, sinceMs, limit, busy);
      return due.map(({ id: deliveryId, attempts }) => ({ deliveryId, attempts }));
    },
  };
}

/** Looks for what has begun and what is over, and queues the webhooks whose time has come. */
export async function watchAlerts({ store, queues, log }: AlertContext): Promise<void> {
  const { began, ended } = await updateAlertEvents(store);
  if (began > 0 || ended > 0) log.info({ began, ended }, 'alerts have changed');
  // Those that are on the queue already are not put on it again: an attempt is one job.
  for (const { id, attempts } of await dueDeliveries(store, AT_A_TIME))
    await queues.enqueue('alert', { deliveryId: id, attempts });
  await deleteOldAlertEvents(store);
}

/** The job `alert`: sends a webhook once. It is due again later, should this worker be lost meanwhile. */
export async function sendAlert({ deliveryId, attempts }: AlertJob, context: AlertContext): Promise<void> {
  const { store, log } = context;
  const retryMs = RETRIES_MS[attempts];
  const claimed = await claimDelivery(store, { id: deliveryId, attempts }, retryMs ?? RETRIES_MS[0] ?? 0);
  if (!claimed) return;
  const { status, error } = await attempt(claimed, context);
  const isSent = error === null;
  const state = isSent ? 'sent' : retryMs === undefined ? 'failed' : 'queued';
  await settleDelivery(store, claimed, { state, status, error });
  const { alert_id, attempts: made } = claimed;
  if (!isSent)
    log.warn({ alert_id, attempts: made, status, reason: error, state }, 'a webhook was not delivered');
}

type Outcome = Pick<DeliveryResult, 'status' | 'error'>;

async function attempt(
  delivery: ClaimedDelivery,
  { secrets, allowsPrivate }: AlertContext,
): Promise<Outcome> {
  try {
    const url = secrets.open(delivery.url_encrypted);
    const secret = secrets.open(delivery.secret_encrypted);
    const status = await sendWebhook({ url, secret, id: delivery.id, body: bodyOf(delivery) }, allowsPrivate);
    const isTaken = status >= 200 && status < 300;
    return { status, error: isTaken ? null : `it was answered with ${status}` };
  } catch (thrown) {
    return { status: null, error: toError(thrown).message };
  }
}

function bodyOf(delivery: ClaimedDelivery): string {
  const { alert_id, event_id, status, condition, subject, message, began_at, ended_at } = delivery;
  return JSON.stringify({
    ...{ type: condition, status, alert_id, event_id, subject, message },
    began_at: began_at.toISOString(),
    // A late webhook of the beginning does not tell of the end.
    ended_at: status === 'resolved' ? (ended_at?.toISOString() ?? null) : null,
  });
}
