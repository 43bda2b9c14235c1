/** How an endpoint does, in a word. */
import type { BriefEndpoint } from '../generated/routes.js';
import { Badge, type Tone } from './text.js';

type State = Pick<BriefEndpoint, 'status' | 'asleep' | 'errors' | 'requests'>;

/** Of all requests: an endpoint with more errors is failing, one with fewer has had some. */
const FAILING_FROM = 0.05;

/** What is said of one that serves while requests fail. */
export function FailingState({ errors, requests }: Pick<BriefEndpoint, 'errors' | 'requests'>) {
  return errors > 0 && errors >= FAILING_FROM * requests ? (
    <Badge tone="bad">Failing</Badge>
  ) : (
    <Badge tone="warn">Some errors</Badge>
  );
}

/** What states are called wherever they are shown. One that is compiled may have been stopped before that. */
export const STATES: Readonly<Record<BriefEndpoint['status'], readonly [string, Tone]>> = {
  created: ['Not compiled', 'idle'],
  compiled: ['Not serving', 'idle'],
  running: ['Running', 'ok'],
  stopped: ['Stopped', 'idle'],
  error: ['Error', 'bad'],
};

export function EndpointState({ status, asleep, errors, requests }: State) {
  const [word, tone] = STATES[status];
  if (status === 'running' && errors > 0) return <FailingState errors={errors} requests={requests} />;
  return <Badge tone={tone}>{status === 'running' && asleep ? 'Asleep' : word}</Badge>;
}
