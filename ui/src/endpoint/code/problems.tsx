/** What the compiler said, in a list: a click leads to the place, a button does what it suggests. */
import type { Diagnostic } from '../../api/client.js';
import { Columns } from '../../base/columns.js';
import { Button } from '../../base/controls.js';
import { Badge } from '../../base/text.js';
import { Visible } from '../../base/visible.js';
import type { Buffers } from './buffers.js';
import type { CheckedDraft } from './draft.js';
import { pathsOf } from './files.js';
import type { Located } from './places.js';

interface ProblemsProps {
  readonly checked: CheckedDraft;
  readonly buffers: Buffers | undefined;
}

export function Problems({ checked: { source, diagnostics, hasFailed }, buffers }: ProblemsProps) {
  const errors = diagnostics.filter(({ level }) => level === 'error').length;
  const warnings = diagnostics.length - errors;
  const hasFiles = pathsOf(source).length > 1;
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
            <Problem key={index} diagnostic={diagnostic} buffers={buffers} hasFiles={hasFiles} />
          ))}
        </ul>
      )}
    </section>
  );
}

function some(number: number, what: string): string {
  return number === 0 ? '' : `${number} ${what}${number === 1 ? '' : 's'}`;
}

interface ProblemProps {
  readonly diagnostic: Diagnostic;
  readonly buffers: Buffers | undefined;
  /** Whether there are several, so that a place has the name of its file. */
  readonly hasFiles: boolean;
}

function Problem({ diagnostic, buffers, hasFiles }: ProblemProps) {
  const { level, code, message, labels, suggestions, rendered } = diagnostic;
  return (
    <li>
      <div class="problem-head">
        <Badge tone={level === 'error' ? 'bad' : 'warn'}>{level}</Badge>
        <AtPlace range={diagnostic} buffers={buffers} hasFiles={hasFiles} text={message} />
        {code !== null && <code class="muted">{code}</code>}
      </div>
      <Labels labels={labels} buffers={buffers} hasFiles={hasFiles} />
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
          {buffers?.canApply(suggestion) && (
            <Button isSmall onClick={() => buffers.apply(suggestion)} label={`Apply: ${suggestion.message}`}>
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

interface LabelsProps extends Omit<ProblemProps, 'diagnostic'> {
  readonly labels: Diagnostic['labels'];
}

/** What the compiler says of single places: at the mistake first, then of what has to do with it. */
function Labels({ labels, ...others }: LabelsProps) {
  const said = labels.filter(({ text }) => text !== null);
  if (said.length === 0) return null;
  const sorted = said.sort((left, right) => Number(right.is_primary) - Number(left.is_primary));
  return (
    <ul class="problem-labels small">
      {sorted.map((label, index) => (
        <li key={index}>
          <AtPlace {...others} range={label} text={label.text ?? ''} />
        </li>
      ))}
    </ul>
  );
}

interface AtPlaceProps extends Omit<ProblemProps, 'diagnostic'> {
  readonly range: Located;
  readonly text: string;
}

/** What is said of a place, which a click shows if it is in the handler's own source. */
function AtPlace({ range, text, buffers, hasFiles }: AtPlaceProps) {
  const place = buffers?.placeOf(range);
  if (!place)
    return (
      <span>
        <Visible text={text} />
      </span>
    );
  const { file, span, line } = place;
  return (
    <button type="button" class="problem-place" onClick={() => buffers?.goTo(file, span)}>
      <span class="mono">
        line {line}
        {hasFiles && <Visible text={` of ${file}`} isOneLine />}
      </span>{' '}
      <Visible text={text} />
    </button>
  );
}
