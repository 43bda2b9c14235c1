/** How an endpoint does, in a word. */
import type { BriefEndpoint } from '../generated/routes.js';
import { Badge, type Tone } from './text.js';

type State = Pick<BriefEndpoint, 'status' | 'running' | 'asleep' | 'errors' | 'serving_requests'>;

/** Share of failed requests from which an endpoint is failing; one with fewer has had some errors. */
const FAILING_FROM = 0.05;

interface FailingStateProps {
  readonly errors: number;
  readonly requests: number;
}

/** What is said of one that serves while requests fail. */
export function FailingState({ errors, requests }: FailingStateProps) {
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

/** What is said of one that serves, but without a process until the next request. */
export const ASLEEP = 'Asleep';

/** What serves counts before what the newest code does: that code may be a draft. */
export function EndpointState({ status, running, asleep, errors, serving_requests: requests }: State) {
  if (running && errors > 0) return <FailingState errors={errors} requests={requests} />;
  if (running && status === 'error') return <Badge tone="warn">New code fails</Badge>;
  if (running) return <Badge tone="ok">{asleep ? ASLEEP : 'Running'}</Badge>;
  if (status === 'running') return <Badge tone="warn">Starting</Badge>;
  const [word, tone] = STATES[status];
  return <Badge tone={tone}>{word}</Badge>;
}
