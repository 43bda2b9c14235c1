/** What was before, and what is after. */
import type { AuditEntry } from '../generated/routes.js';

type Members = AuditEntry['before'];

export function ChangeTable({ before, after }: { readonly before: Members; readonly after: Members }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const [hasBefore, hasAfter] = [before !== null, after !== null];
  return (
    <div class="scroll-x">
      <table class="changes">
        <thead>
          <tr>
            <th scope="col">What</th>
            {hasBefore && <th scope="col">Before</th>}
            {hasAfter && <th scope="col">{hasBefore ? 'After' : 'Value'}</th>}
          </tr>
        </thead>
        <tbody>
          {names.map((name) => (
            <tr key={name}>
              <th scope="row">{name.replaceAll('_', ' ')}</th>
              {hasBefore && (
                <td class="removed">
                  <Value value={before?.[name]} />
                </td>
              )}
              {hasAfter && (
                <td class="added">
                  <Value value={after?.[name]} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ value }: { readonly value: unknown }) {
  if (value === undefined || value === null) return <span class="muted">nothing</span>;
  if (value === '***') return <span class="muted">not shown</span>;
  if (typeof value === 'object') return <pre>{JSON.stringify(value, null, 2)}</pre>;
  return <span>{String(value)}</span>;
}
