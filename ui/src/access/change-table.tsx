/** What was before, and what is after. */
import { Visible } from '../base/visible.js';
import type { AuditEntry } from '../generated/routes.js';
import { AuditedId } from './audited-id.js';

type Members = AuditEntry['before'];

interface ChangeTableProps {
  readonly before: Members;
  readonly after: Members;
  readonly names: AuditEntry['names'];
}

export function ChangeTable({ before, after, names: known }: ChangeTableProps) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])].filter(
    (name) => !DIGESTS.includes(name),
  );
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
              <th scope="row">{titleOf(name)}</th>
              {hasBefore && (
                <td class="removed">
                  <Value value={before?.[name]} names={known} />
                </td>
              )}
              {hasAfter && (
                <td class="added">
                  <Value value={after?.[name]} names={known} />
                </td>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ value, names }: { readonly value: unknown; readonly names: AuditEntry['names'] }) {
  if (value === undefined || value === null) return <span class="muted">nothing</span>;
  if (value === '***') return <span class="muted">not shown</span>;
  if (typeof value === 'string' && Object.hasOwn(names, value)) return <AuditedId id={value} names={names} />;
  if (typeof value === 'object') return <pre>{JSON.stringify(value, null, 2)}</pre>;
  return <Visible text={String(value)} />;
}

/** Follow from the version that serves, and from its code; nobody knows them by sight. */
const DIGESTS: readonly string[] = ['artifact', 'artifact_source_key', 'source_key', 'desired_deployment_id'];

/** What the members of a row are called where their names do not say it. */
const TITLES: Readonly<Record<string, string>> = { confirmed_deployment_id: 'serves' };

/** Where the value is a name instead of an id, the title is that of what it names. */
function titleOf(member: string): string {
  return TITLES[member] ?? member.replace(/_id$/, '').replaceAll('_', ' ');
}
