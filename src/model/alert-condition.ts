/** What alerts can watch for, and what each is about. */

export const ALERT_CONDITIONS = [
  'crash_loop',
  'error_rate',
  'service_unreachable',
  'build_failed',
  'certificate_expiry',
] as const;
export type AlertCondition = (typeof ALERT_CONDITIONS)[number];

/** What an alert is about: one endpoint, the endpoints of a host, or one service. */
export type AlertScope =
  | { readonly endpoint_id: string }
  | { readonly domain: string }
  | { readonly service_id: string };

/** What the scope of a condition may name. */
export const SCOPES_OF_CONDITION: Readonly<Record<AlertCondition, readonly string[]>> = {
  crash_loop: ['endpoint_id', 'domain'],
  error_rate: ['endpoint_id', 'domain'],
  service_unreachable: ['service_id'],
  build_failed: ['endpoint_id', 'domain'],
  certificate_expiry: ['domain'],
};
