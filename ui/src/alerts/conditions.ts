/** What alerts can watch for, in words; docs/ALERTS.md has when each begins and is over. */
import { me } from '../api/session.js';
import type { Alert } from '../generated/routes.js';

export type Condition = Alert['on'];
/** What an alert is about. */
export type About = 'all' | 'host' | 'endpoint' | 'service';

interface ConditionText {
  readonly label: string;
  readonly abouts: readonly About[];
}

export const CONDITIONS: Readonly<Record<Condition, ConditionText>> = {
  crash_loop: { label: 'A handler keeps crashing', abouts: ['all', 'host', 'endpoint'] },
  error_rate: { label: 'Too many requests fail', abouts: ['all', 'host', 'endpoint'] },
  service_unreachable: { label: 'A service cannot be reached', abouts: ['all', 'service'] },
  build_failed: { label: 'A build has failed', abouts: ['all', 'host', 'endpoint'] },
  certificate_expiry: { label: 'A certificate expires', abouts: ['all', 'host'] },
};

/** What one may choose: who is limited to some hosts is told of nothing that others have. */
export function aboutsOf(on: Condition): readonly About[] {
  const { abouts } = CONDITIONS[on];
  return me.value?.domains === null ? abouts : abouts.filter((about) => about !== 'all');
}

/** The condition with its numbers. */
export function sentenceOf({ on, percent, minutes, days }: Alert): string {
  if (on === 'error_rate') return `${percent} % of the requests of ${minutes} min fail`;
  if (on === 'certificate_expiry') return `A certificate expires within ${days} days`;
  return CONDITIONS[on].label;
}

export function aboutOf(scope: Alert['scope']): About {
  if (scope?.endpoint_id !== undefined) return 'endpoint';
  if (scope?.service_id !== undefined) return 'service';
  return scope?.domain === undefined ? 'all' : 'host';
}
