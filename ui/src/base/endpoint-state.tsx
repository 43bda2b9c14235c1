/** How an endpoint does, in a word. */
import type { BriefEndpoint } from '../generated/routes.js';
import { Badge, type Tone } from './text.js';

type State = Pick<BriefEndpoint, 'status' | 'asleep' | 'errors'>;

const WORDS: Readonly<Record<BriefEndpoint['status'], readonly [string, Tone]>> = {
  created: ['Draft', 'idle'],
  compiled: ['Compiled', 'idle'],
  running: ['Running', 'ok'],
  stopped: ['Stopped', 'idle'],
  error: ['Error', 'bad'],
};

export function EndpointState({ status, asleep, errors }: State) {
  const [word, tone] = WORDS[status];
  if (status === 'running' && errors > 0) return <Badge tone="bad">Failing</Badge>;
  return <Badge tone={tone}>{status === 'running' && asleep ? 'Asleep' : word}</Badge>;
}
