/** Schemas of alerts. */
import { type Static, Type } from '@sinclair/typebox';
import { ALERT_CONDITIONS, type AlertScope } from '../../model/alert-condition.js';
import { SECRET_PATTERN } from '../../webhooks/webhook.js';
import { Enabled, Id, nullable, oneOf, optional, Timestamp } from '../route/schemas.js';

const Scope = nullable(
  Type.Unsafe<AlertScope>(
    Type.Object(
      optional({ endpoint_id: Id, domain: Type.String({ format: 'hostname-or-any' }), service_id: Id }),
      {
        title: 'AlertScope',
        description: 'One endpoint, the endpoints of a host, or one service; without it, all',
        minProperties: 1,
        maxProperties: 1,
        additionalProperties: false,
      },
    ),
  ),
);
const Url = Type.String({
  format: 'web-url',
  maxLength: 2_048,
  description: 'Gets a POST with JSON when it begins, and one when it is over',
});
const Secret = Type.String({
  pattern: SECRET_PATTERN,
  description: 'Signs the webhooks, as https://www.standardwebhooks.com has it; made unless given',
});

/** Without defaults: a change leaves alone what is not given. */
const SETTINGS = {
  percent: Type.Integer({
    minimum: 1,
    maximum: 100,
    description: 'Of `error_rate`: so many percent of the requests have an error (5xx)',
  }),
  minutes: Type.Integer({
    minimum: 1,
    maximum: 60,
    description: 'Of `error_rate`: of the requests of so many minutes, at least 10',
  }),
  days: Type.Integer({
    minimum: 1,
    maximum: 365,
    description: 'Of `certificate_expiry`: a certificate expires within so many days',
  }),
  enabled: Type.Boolean(),
};

const NEW_SETTINGS = {
  percent: Type.Integer({ ...SETTINGS.percent, default: 5 }),
  minutes: Type.Integer({ ...SETTINGS.minutes, default: 5 }),
  days: Type.Integer({ ...SETTINGS.days, default: 14 }),
  enabled: Enabled,
};

export const NewAlert = Type.Object({
  on: oneOf(ALERT_CONDITIONS),
  url: Url,
  ...optional({ scope: Scope, secret: Secret, ...NEW_SETTINGS }),
});
export type NewAlertBody = Static<typeof NewAlert>;

export const AlertChange = Type.Object(optional({ url: Url, scope: Scope, secret: Secret, ...SETTINGS }));

export const AlertView = Type.Object(
  {
    id: Id,
    on: oneOf(ALERT_CONDITIONS),
    scope: Scope,
    url: Type.String(),
    ...SETTINGS,
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { title: 'Alert' },
);

export const CreatedAlert = Type.Object(
  { ...AlertView.properties, secret: Type.String({ description: 'Shown here only' }) },
  { title: 'CreatedAlert' },
);

const Delivery = Type.Object(
  {
    status: oneOf(['firing', 'resolved']),
    state: oneOf(['queued', 'sent', 'failed']),
    attempts: Type.Integer(),
    last_status: nullable(Type.Integer({ description: 'Of the last answer' })),
    last_error: nullable(Type.String()),
  },
  { title: 'AlertDelivery' },
);

export const AlertEventView = Type.Object(
  {
    id: Id,
    subject: Type.Unsafe<Readonly<Record<string, unknown>>>({
      type: 'object',
      additionalProperties: true,
      description: 'The endpoint, the service or the domain',
    }),
    message: Type.String(),
    began_at: Timestamp,
    ended_at: nullable(Timestamp),
    deliveries: Type.Array(Delivery),
  },
  { title: 'AlertEvent' },
);
