/** What has been tried before in this browser. */
import { Button } from '../../base/controls.js';
import { Ago, Badge } from '../../base/text.js';
import type { PastTrial } from './history.js';
import { pathOf } from './trial.js';

interface PastTrialsProps {
  readonly past: readonly PastTrial[];
  readonly route: string;
  readonly method: string;
  readonly onChoose: (past: PastTrial) => void;
  readonly onForget: () => void;
}

export function PastTrials({ past, route, method, onChoose, onForget }: PastTrialsProps) {
  return (
    <section class="card" aria-label="Sent before">
      <header>
        <h2>Sent before</h2>
        {past.length > 0 && (
          <Button isSmall look="plain" onClick={onForget}>
            Forget them
          </Button>
        )}
      </header>
      <ul class="past-trials">
        {past.map((one) => (
          <li key={one.at}>
            <button type="button" class="choice" onClick={() => onChoose(one)}>
              <span class="truncate mono">
                {method} {pathOf(route, one.trial)}
              </span>
              <span class="row-inline small muted">
                <Badge tone={one.status >= 500 ? 'bad' : one.status >= 400 ? 'warn' : 'ok'}>
                  {String(one.status)}
                </Badge>
                {one.version !== null && `version ${one.version}, `}
                <Ago at={one.at} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      <p class="pad-in small muted">
        Kept in this browser only, the last 20. Left out: values of headers such as Authorization and of all
        else whose name says that it is secret, and bodies that are not JSON.
      </p>
    </section>
  );
}
