/** The handlers of a ZIP: how far each is, and what is wrong with those that have failed. */

import { Link } from 'wouter-preact';
import { may } from '../api/session.js';
import { Columns } from '../base/columns.js';
import { ListTable } from '../base/list-table.js';
import { Badge, type Tone } from '../base/text.js';
import { Visible } from '../base/visible.js';
import type { ImportHandler } from '../generated/routes.js';

const TONES: Readonly<Record<ImportHandler['state'], Tone>> = {
  queued: 'idle',
  compiling: 'warn',
  compiled: 'ok',
  starting: 'warn',
  started: 'ok',
  failed: 'bad',
};
/** Those that are worked at come first. */
const ORDER: readonly ImportHandler['state'][] = [
  'compiling',
  'starting',
  'queued',
  'compiled',
  'started',
  'failed',
];
const SHOWN = 50;

export function Handlers({ handlers }: { readonly handlers: readonly ImportHandler[] }) {
  if (handlers.length === 0) return null;
  const shown = [...handlers].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state)).slice(0, SHOWN);
  return (
    <ListTable columns={['Handler', 'State']}>
      {shown.map(({ endpoint_id, name, handler, state }) => (
        <tr key={endpoint_id}>
          <th scope="row">
            <Visible text={name} isOneLine />{' '}
            <span class="muted small">
              <Visible text={handler} isOneLine />
            </span>
          </th>
          <td data-label="State">
            <Badge tone={TONES[state]}>{state}</Badge>
          </td>
        </tr>
      ))}
    </ListTable>
  );
}

export function FailedHandlers({ handlers }: { readonly handlers: readonly ImportHandler[] }) {
  const failed = handlers.filter(({ state }) => state === 'failed');
  if (failed.length === 0) return null;
  return (
    <section class="stack tight" aria-labelledby="failed">
      <h2 id="failed">
        {failed.length === 1 ? 'One handler has failed' : `${failed.length} handlers have failed`}
      </h2>
      {failed.map(({ endpoint_id, name, handler, stage, message, build_id }) => (
        <article key={endpoint_id} class="card pad stack tight">
          <div class="actions">
            <h3>
              <Visible text={name} isOneLine />
            </h3>
            <span class="muted">
              <Visible text={handler} isOneLine />,{' '}
              {stage === 'start' ? 'when it was started' : 'when it was compiled'}
            </span>
          </div>
          <Columns>{message}</Columns>
          <div class="actions">
            {may('endpoints:read') && (
              <Link class="button primary" href={`/ui/endpoints/${endpoint_id}/code`}>
                {may('endpoints:write') ? 'Mend the code' : 'See the code'}
              </Link>
            )}
            {build_id !== null && may('builds:read') && (
              <Link class="button" href={`/ui/builds/${build_id}`}>
                See the build
              </Link>
            )}
          </div>
        </article>
      ))}
    </section>
  );
}
