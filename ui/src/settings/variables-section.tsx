/** The plain variables of a domain, a collection or an endpoint. */
import { useMemo } from 'preact/hooks';
import { call } from '../api/client.js';
import { invalidate, useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Button } from '../base/controls.js';
import { Loaded } from '../base/notices.js';
import { invalidAt } from '../base/problems.js';
import type { Variables } from '../generated/routes.js';
import type { Owner } from './owner.js';
import { SaveForm } from './save-form.js';
import { Section } from './section.js';
import { useForm } from './use-form.js';

interface Row {
  readonly name: string;
  readonly value: string;
}

interface EditedVariables {
  readonly rows: readonly Row[];
  /** What was saved when typing began: what differs from it is what others have changed meanwhile. */
  readonly before: Variables;
}

export function VariablesSection({ owner }: { readonly owner: Owner }) {
  const mayRead = may('variables:read');
  const result = useQuery(
    `GET /api/${owner.kind}/{id}/variables`,
    mayRead ? { params: { id: owner.id } } : undefined,
  );
  if (!mayRead) return null;
  return (
    <Section
      title="Variables"
      hint="A handler finds them in its environment. They are in force as soon as they are saved."
    >
      <Loaded result={result}>{(saved) => <VariablesForm owner={owner} saved={saved} />}</Loaded>
    </Section>
  );
}

function VariablesForm({ owner, saved }: { readonly owner: Owner; readonly saved: Variables }) {
  const form = useForm(`typed variables ${owner.id}`, useSaved(saved));
  const { rows, before } = form.values.typed;
  const mayEdit = may('variables:write');
  const change = (changed: readonly Row[]) => {
    if (JSON.stringify(changed) === JSON.stringify(rowsOf(before))) form.discard();
    else form.set('typed', { rows: changed, before });
  };
  const changeRow = (place: number, row: Partial<Row>) =>
    change(rows.map((one, at) => (at === place ? { ...one, ...row } : one)));
  const save = async () => {
    const names = rows.filter(isGiven).map(({ name }) => name);
    const twice = names.find((name, at) => names.indexOf(name) < at);
    if (twice !== undefined) throw invalidAt(`body.${twice}`, 'there is another variable of this name');
    // What others have changed meanwhile stays.
    const answer = await call(`PATCH /api/${owner.kind}/{id}/variables`, {
      params: { id: owner.id },
      body: changesOf(before, rows),
    });
    invalidate(`/api/${owner.kind}/${owner.id}`, '/api/endpoints');
    return answer;
  };
  const places = rows.map(({ name }) => `body.${name}`);
  return (
    <SaveForm form={form} places={places} mayEdit={mayEdit} onSave={save}>
      {(problem) => (
        <>
          {rows.length === 0 && <p class="muted">There are none.</p>}
          <ul class="stack tight">
            {rows.map((row, place) => (
              <li key={place}>
                <VariableRow
                  row={row}
                  problem={problem(`body.${row.name}`)}
                  mayEdit={mayEdit}
                  onChange={(changed) => changeRow(place, changed)}
                  onRemove={() => change(rows.filter((_, at) => at !== place))}
                />
              </li>
            ))}
          </ul>
          {mayEdit && (
            <div>
              <Button isSmall onClick={() => change([...rows, { name: '', value: '' }])}>
                Add a variable
              </Button>
            </div>
          )}
        </>
      )}
    </SaveForm>
  );
}

interface VariableRowProps {
  readonly row: Row;
  readonly problem: string | undefined;
  readonly mayEdit: boolean;
  readonly onChange: (row: Partial<Row>) => void;
  readonly onRemove: () => void;
}

function VariableRow({ row: { name, value }, problem, mayEdit, onChange, onRemove }: VariableRowProps) {
  const of = name === '' ? 'of the new variable' : `of ${name}`;
  return (
    <>
      <div class="pair">
        <input
          class="input mono"
          aria-label={`Name ${of}`}
          aria-invalid={problem !== undefined}
          placeholder="NAME"
          spellcheck={false}
          value={name}
          onInput={(event) => onChange({ name: event.currentTarget.value })}
        />
        <textarea
          class="input mono"
          aria-label={`Value ${of}`}
          placeholder="value"
          rows={Math.min(8, value.split('\n').length)}
          spellcheck={false}
          value={value}
          onInput={(event) => onChange({ value: event.currentTarget.value })}
        />
        {mayEdit && (
          <Button
            look="plain"
            label={name === '' ? 'Remove this variable' : `Remove ${name}`}
            onClick={onRemove}
          >
            ✕
          </Button>
        )}
      </div>
      {problem !== undefined && (
        <div class="problem small" role="alert">
          {problem}
        </div>
      )}
    </>
  );
}

/** The same object while the variables are the same. */
function useSaved(saved: Variables): { readonly typed: EditedVariables } {
  return useMemo(() => ({ typed: { rows: rowsOf(saved), before: saved } }), [saved]);
}

function rowsOf(variables: Variables): readonly Row[] {
  return Object.entries(variables)
    .map(([name, value]) => ({ name, value }))
    .sort((one, other) => one.name.localeCompare(other.name));
}

/** Not a row that was added and left empty. */
const isGiven = ({ name, value }: Row) => name !== '' || value !== '';

/** Null for what was taken away. */
function changesOf(before: Variables, rows: readonly Row[]): Record<string, string | null> {
  const given = new Map(rows.filter(isGiven).map(({ name, value }) => [name, value]));
  const removed = Object.keys(before).filter((name) => !given.has(name));
  const changed = [...given].filter(([name, value]) => before[name] !== value);
  return { ...Object.fromEntries(removed.map((name) => [name, null])), ...Object.fromEntries(changed) };
}
