/** How an endpoint is, in a word. */
import { STATES } from '../base/endpoint-state.js';
import type { Tone } from '../base/text.js';
import type { Endpoint } from '../generated/routes.js';

interface State {
  readonly tone: Tone;
  readonly text: string;
}

export function stateOf(endpoint: Endpoint): State {
  const { status, running } = endpoint;
  if (running) {
    const serving = servingOf(endpoint);
    return hasFailures(endpoint)
      ? { tone: 'warn', text: `${serving}, some requests fail` }
      : { tone: 'ok', text: serving };
  }
  if (status === 'running') return { tone: 'warn', text: 'Starting' };
  const [text, tone] = STATES[status];
  return { tone, text };
}

function servingOf({ running_version, deployment }: Endpoint): string {
  const [first, second] = deployment?.targets ?? [];
  if (first && second) return `Versions ${first.version} and ${second.version} serve`;
  return running_version === null ? 'Running' : `Version ${running_version} serves`;
}

/** Whether what serves now cannot be kept running, or has failed within the last hour. */
function hasFailures({ recent_errors, last_failure, deployment }: Endpoint): boolean {
  const targets = deployment?.targets ?? [];
  const isOfNow = targets.some(({ version }) => version === last_failure?.version);
  return targets.some(({ state }) => state === 'failed') || (recent_errors > 0 && isOfNow);
}
