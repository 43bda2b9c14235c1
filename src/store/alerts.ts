/** The tables `alerts` and `alert_events`, as the API has them. What becomes an event is in `alert-events.ts`. */
import type { AlertCondition, AlertScope } from '../model/alert-condition.js';
import type { Scope } from '../model/permission.js';
import { nextUpdatedAt, type Store, transaction } from './database.js';
import { columnValues, insertInto } from './insert.js';
import { visible } from './visibility.js';

/** A row. */
export interface Alert {
  readonly id: string;
  readonly condition: AlertCondition;
  /** Null: everything. */
  readonly scope: AlertScope | null;
  /** Threshold of `error_rate`: so many percent of the requests of so many minutes. */
  readonly percent: number;
  readonly minutes: number;
  /** Threshold of `certificate_expiry`: it expires within so many days. */
  readonly days: number;
  readonly enabled: boolean;
  readonly url_encrypted: string;
  readonly secret_encrypted: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const USER_COLUMNS = [
  ...(['condition', 'scope', 'percent', 'minutes', 'days', 'enabled'] as const),
  ...(['url_encrypted', 'secret_encrypted'] as const),
] as const;
export type NewAlert = Pick<Alert, (typeof USER_COLUMNS)[number]>;

const insertAlert = insertInto<NewAlert, Alert>('alerts', USER_COLUMNS);

export async function listAlerts({ knex }: Store, scope: Scope): Promise<Alert[]> {
  return visible(knex<Alert>('alerts').orderBy(['created_at', 'id']), 'alert', scope);
}

export async function findAlert({ knex }: Store, id: string): Promise<Alert | undefined> {
  return knex<Alert>('alerts').where({ id }).first();
}

export async function countAlerts({ knex }: Store): Promise<number> {
  const [row] = await knex('alerts').count<{ count: number }[]>('* as count');
  return row?.count ?? 0;
}

/** @param requireRoom throws where there may be no more; nobody makes another one meanwhile */
export async function createAlert(
  store: Store,
  alert: NewAlert,
  requireRoom: (tx: Store) => Promise<void>,
): Promise<Alert> {
  return transaction(store, async (tx) => {
    await tx.knex.raw("SELECT pg_advisory_xact_lock(hashtextextended('alerts', 0))");
    await requireRoom(tx);
    return insertAlert(tx, alert);
  });
}

/** @returns undefined when there is no such alert */
export async function updateAlert(
  store: Store,
  id: string,
  changes: Partial<NewAlert>,
): Promise<Alert | undefined> {
  const [updated] = await store
    .knex<Alert>('alerts')
    .where({ id })
    .update({ ...columnValues(changes), updated_at: nextUpdatedAt(store) } as never)
    .returning('*');
  return updated;
}

/** @returns false when there is no such alert */
export async function deleteAlert({ knex }: Store, id: string): Promise<boolean> {
  return (await knex('alerts').where({ id }).delete()) > 0;
}

/** What was sent of an event. */
export interface AlertDelivery {
  readonly status: 'firing' | 'resolved';
  readonly state: 'queued' | 'sent' | 'failed';
  readonly attempts: number;
  /** HTTP status of the last answer; null: none. */
  readonly last_status: number | null;
  readonly last_error: string | null;
}

/** A row of `alert_events`, with its deliveries. */
export interface AlertEvent {
  readonly id: string;
  readonly subject: Readonly<Record<string, unknown>>;
  readonly message: string;
  readonly began_at: Date;
  readonly ended_at: Date | null;
  readonly deliveries: readonly AlertDelivery[];
}

/** The events of an alert, the newest first. */
export async function eventsOfAlert({ knex }: Store, id: string, limit: number): Promise<AlertEvent[]> {
  return knex('alert_events')
    .where({ alert_id: id })
    .orderBy([
      { column: 'began_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .limit(limit)
    .select<AlertEvent[]>(
      ...['id', 'subject', 'message', 'began_at', 'ended_at'],
      knex.raw(
        `(SELECT coalesce(jsonb_agg(jsonb_build_object('status', status, 'state', state, 'attempts', attempts,
                   'last_status', last_status, 'last_error', last_error) ORDER BY status), '[]')
            FROM alert_deliveries WHERE event_id = alert_events.id) AS deliveries`,
      ),
    );
}
