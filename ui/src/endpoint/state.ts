/** How an endpoint is, in a word. */
import type { Tone } from '../base/text.js';
import type { Endpoint } from '../generated/routes.js';

export function stateOf({ status, running, running_version, deployment }: Endpoint): {
  readonly tone: Tone;
  readonly text: string;
} {
  if (status === 'error' && !running) return { tone: 'bad', text: 'error' };
  if (running) {
    const targets = deployment?.targets ?? [];
    const [first, second] = targets;
    if (first && second) return { tone: 'ok', text: `versions ${first.version} and ${second.version} serve` };
    return { tone: 'ok', text: running_version === null ? 'running' : `version ${running_version} serves` };
  }
  if (status === 'running') return { tone: 'warn', text: 'starting' };
  return { tone: 'idle', text: status === 'created' ? 'not compiled yet' : status };
}
