/** What differs of an object, before and after; of code the lines. */
import { ChangeTable } from '../access/change-table.js';
import { Columns } from '../base/columns.js';
import { Visible } from '../base/visible.js';
import type { Plan } from '../generated/routes.js';

type Change = Plan['changes'][number];

export function FieldChanges({ action, fields }: Pick<Change, 'action' | 'fields'>) {
  const plain = fields.filter(({ diff }) => diff === undefined);
  const side = (which: 'before' | 'after') =>
    Object.fromEntries(plain.map((field) => [field.path, field[which]]));
  return (
    <div class="stack tight">
      {plain.length > 0 && (
        <ChangeTable
          before={action === 'create' ? null : side('before')}
          after={action === 'delete' ? null : side('after')}
          names={{}}
        />
      )}
      {fields.map(({ path, diff }) => diff !== undefined && <Lines key={path} diff={diff} />)}
    </div>
  );
}

const KINDS: Readonly<Record<string, string>> = {
  '+': 'line-added',
  '-': 'line-removed',
  '@': 'muted',
};

/** A difference of lines, as the API writes it: `+`, `-` or a space before each. */
function Lines({ diff }: { readonly diff: string }) {
  return (
    <Columns>
      <div class="lines">
        {diff.split('\n').map((line, at) => (
          <div key={at} class={KINDS[line.charAt(0)]}>
            <Visible text={line} />
          </div>
        ))}
      </div>
    </Columns>
  );
}
