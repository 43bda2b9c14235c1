/** What the compiler said, in a list: a click leads to the place, a button does what it suggests. */
import type { EditorView } from '@codemirror/view';
import type { Diagnostic } from '../../api/client.js';
import { Columns } from '../../base/columns.js';
import { Button } from '../../base/controls.js';
import { Badge } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { CheckedDraft } from './draft.js';
import { apply, canApply, goTo, spanOf } from './places.js';

interface ProblemsProps {
  readonly checked: CheckedDraft;
  readonly view: EditorView | undefined;
}

export function Problems({ checked: { diagnostics, hasFailed }, view }: ProblemsProps) {
  const errors = diagnostics.filter(({ level }) => level === 'error').length;
  const warnings = diagnostics.length - errors;
  return (
    <section class="card" aria-label="What the compiler says">
      <header>
        <div role="status">
          <h2>
            {hasFailed ? 'It does not compile' : 'It compiles'}
            {diagnostics.length > 0 &&
              `: ${[some(errors, 'error'), some(warnings, 'warning')].filter(Boolean).join(', ')}`}
          </h2>
        </div>
      </header>
      {diagnostics.length > 0 && (
        <ul class="problems">
          {diagnostics.map((diagnostic, index) => (
            <Problem key={index} diagnostic={diagnostic} view={view} />
          ))}
        </ul>
      )}
    </section>
  );
}

function some(number: number, what: string): string {
  return number === 0 ? '' : `${number} ${what}${number === 1 ? '' : 's'}`;
}

function Problem({
  diagnostic,
  view,
}: {
  readonly diagnostic: Diagnostic;
  readonly view: EditorView | undefined;
}) {
  const { level, code, message, labels, suggestions, rendered } = diagnostic;
  const span = view && spanOf(view.state, diagnostic);
  const line = span && view.state.doc.lineAt(span.from).number;
  return (
    <li>
      <div class="problem-head">
        <Badge tone={level === 'error' ? 'bad' : 'warn'}>{level}</Badge>
        {span ? (
          <button type="button" class="problem-place" onClick={() => goTo(view, span)}>
            <span class="mono">line {line}</span> <Visible text={message} />
          </button>
        ) : (
          <span>
            <Visible text={message} />
          </span>
        )}
        {code !== null && <code class="muted">{code}</code>}
      </div>
      <Labels labels={labels} view={view} />
      {suggestions.map((suggestion, index) => (
        <div key={index} class="problem-help">
          <span>
            <span class="muted">Help:</span> <Visible text={suggestion.message} />
            {suggestion.edits.length > 0 && (
              <>
                {' '}
                <code class="replacement">
                  {suggestion.edits.map(({ replacement }) => replacement).join(' … ')}
                </code>
              </>
            )}
          </span>
          {view && canApply(view.state, suggestion) && (
            <Button isSmall onClick={() => apply(view, suggestion)} label={`Apply: ${suggestion.message}`}>
              Apply
            </Button>
          )}
        </div>
      ))}
      <details>
        <summary class="small muted">As in a terminal</summary>
        <Columns>
          <Visible text={rendered} />
        </Columns>
      </details>
    </li>
  );
}

interface LabelsProps {
  readonly labels: Diagnostic['labels'];
  readonly view: EditorView | undefined;
}

/** What the compiler says of single places: at the mistake first, then of what has to do with it. */
function Labels({ labels, view }: LabelsProps) {
  const said = labels.filter(({ text }) => text !== null);
  if (said.length === 0) return null;
  const sorted = said.sort((left, right) => Number(right.is_primary) - Number(left.is_primary));
  return (
    <ul class="problem-labels small">
      {sorted.map((label, index) => {
        const span = view && spanOf(view.state, label);
        const what = <Visible text={label.text ?? ''} />;
        if (!span) return <li key={index}>{what}</li>;
        return (
          <li key={index}>
            <button type="button" class="problem-place" onClick={() => goTo(view, span)}>
              <span class="mono">line {view.state.doc.lineAt(span.from).number}</span> {what}
            </button>
          </li>
        );
      })}
    </ul>
  );
}
