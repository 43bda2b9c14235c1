/** What alerts can watch for, and what each is about. */

export const ALERT_CONDITIONS = ['crash_loop', 'error_rate', 'service_unreachable', 'build_failed'] as const;
export type AlertCondition = (typeof ALERT_CONDITIONS)[number];

/** What an alert is about: one endpoint, the endpoints of a host, or one service. */
export type AlertScope =
  | { readonly endpoint_id: string }
  | { readonly domain: string }
  | { readonly service_id: string };

/** Whether a condition is one of services; the others are of endpoints. */
export function isOfServices(condition: AlertCondition): boolean {
  return condition === 'service_unreachable';
}
