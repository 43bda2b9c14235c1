/** The crates that a handler uses, and the edition of Rust that it is written in. */
import { useId } from 'preact/hooks';
import type { ApiError } from '../../api/client.js';
import { Button, SelectField } from '../../base/controls.js';
import { isAtOneOf, problemAt } from '../../base/problems.js';
import { cratesInLock } from '../../generated/cargo-lock.js';
import type { Draft } from './draft.js';
import { type Crate, doubleCrate } from './source.js';

interface CratesProps {
  readonly draft: Draft;
  readonly isReadOnly: boolean;
  /** Why it was not saved. */
  readonly error: ApiError | undefined;
  /** Compiles with crates that are resolved anew; undefined where one may not, or not now. */
  readonly onUpdate: (() => void) | undefined;
}

const NONE: Crate = { name: '', version: '', features: '', rest: {} };

const EDITIONS = ['2021', '2024'] as const;

const placeOf = ({ name }: Crate) => `body.dependencies.${name.trim()}`;

/** Whether an error is one that is shown at its crate. */
export const isAtCrate = (error: ApiError, crates: readonly Crate[]): boolean =>
  isAtOneOf(error, crates.map(placeOf));

/** What is wrong with a crate: what the API says, or that it is left out. */
function problemOf(crate: Crate, error: ApiError | undefined): string | undefined {
  const isNameless = crate.name.trim() === '' && `${crate.version}${crate.features}`.trim() !== '';
  return isNameless ? 'Without a name it is not saved' : problemAt(error, placeOf(crate));
}

export function Crates({ draft, isReadOnly, error, onUpdate }: CratesProps) {
  const { crates, edition, lock } = draft.written.value;
  const double = doubleCrate(crates);
  const change = (at: number, to: Partial<Crate>) =>
    draft.write({ crates: crates.map((crate, index) => (index === at ? { ...crate, ...to } : crate)) });
  return (
    <section class="card" aria-label="Crates">
      <header>
        <h2>Crates</h2>
        <div class="actions">
          {onUpdate && lock === null && crates.length > 0 && (
            <Button isSmall look="plain" onClick={onUpdate}>
              Update crates
            </Button>
          )}
          {!isReadOnly && (
            <Button isSmall onClick={() => draft.write({ crates: [...crates, NONE] })}>
              Add a crate
            </Button>
          )}
        </div>
      </header>
      <div class="pad-in stack tight">
        {crates.length === 0 && (
          <p class="muted">None besides the SDK and what it brings. Crates have a version as in Cargo.</p>
        )}
        {crates.map((crate, index) => (
          <CrateRow
            key={index}
            crate={crate}
            isReadOnly={isReadOnly}
            problem={problemOf(crate, error)}
            onInput={(to) => change(index, to)}
            onRemove={() => draft.write({ crates: crates.filter((_, at) => at !== index) })}
          />
        ))}
        {lock !== null && (
          <div class="row-inline">
            <span class="small muted">
              A Cargo.lock says the versions of {cratesInLock(lock).length} crates.
            </span>
            {!isReadOnly && (
              <Button isSmall look="plain" onClick={() => draft.write({ lock: null })}>
                Remove the lock
              </Button>
            )}
          </div>
        )}
        {isReadOnly ? (
          <p class="small muted">The code is of the edition {edition} of Rust.</p>
        ) : (
          <SelectField
            label="Edition of Rust"
            value={edition}
            options={EDITIONS}
            onChange={(chosen) => draft.write({ edition: chosen })}
          />
        )}
        {double !== undefined && (
          <p class="problem" role="alert">
            {double} is listed twice; only the last one counts.
          </p>
        )}
      </div>
    </section>
  );
}

interface CrateRowProps {
  readonly crate: Crate;
  readonly isReadOnly: boolean;
  readonly problem: string | undefined;
  readonly onInput: (change: Partial<Crate>) => void;
  readonly onRemove: () => void;
}

function CrateRow({ crate, isReadOnly, problem, onInput, onRemove }: CrateRowProps) {
  const id = useId();
  const field = (name: 'name' | 'version' | 'features', label: string, placeholder: string) => (
    <div class="field">
      <label class="small" for={`${id}-${name}`}>
        {label}
      </label>
      <input
        id={`${id}-${name}`}
        class="input mono"
        spellcheck={false}
        readOnly={isReadOnly}
        placeholder={placeholder}
        aria-invalid={problem !== undefined && name === 'name'}
        aria-describedby={problem === undefined ? undefined : `${id}-problem`}
        value={crate[name]}
        onInput={(event) => onInput({ [name]: event.currentTarget.value })}
      />
    </div>
  );
  return (
    <>
      <div class="row">
        {field('name', 'Crate', 'regex')}
        {field('version', 'Version', '1.10')}
        {field('features', 'Features', '')}
        {!isReadOnly && (
          <Button look="plain" label={`Remove ${crate.name || 'this crate'}`} onClick={onRemove}>
            ✕
          </Button>
        )}
      </div>
      {problem !== undefined && (
        <p id={`${id}-problem`} class="problem small" role="alert">
          {problem}
        </p>
      )}
    </>
  );
}
