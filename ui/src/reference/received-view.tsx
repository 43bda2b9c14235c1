/** What an operation has answered. */
import { pretty } from '../base/pretty.js';
import { duration } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { CallResult } from './request.js';

export function ReceivedView({
  received: { status, ms, headers, text, logs },
}: {
  readonly received: CallResult;
}) {
  return (
    <section class="stack tight" aria-label="Answer">
      <div class="actions" aria-live="polite">
        <span class={`status s${String(status)[0]}`}>{status}</span>
        <span class="muted number">{duration(ms)}</span>
      </div>
      {text !== '' && (
        <pre class="code-block answer-body">
          <Visible text={pretty(text)} />
        </pre>
      )}
      {text === '' && <p class="muted">Without a body.</p>}
      {logs.length > 0 && (
        <details class="more">
          <summary>Printed ({logs.length} lines)</summary>
          <pre>{logs.join('\n')}</pre>
        </details>
      )}
      <details class="more">
        <summary>Headers ({headers.length})</summary>
        <dl class="facts">
          {headers.map(([name, value]) => (
            <div key={name} class="pair">
              <dt>
                <code>{name}</code>
              </dt>
              <dd>
                <code>{value}</code>
              </dd>
            </div>
          ))}
        </dl>
      </details>
    </section>
  );
}
