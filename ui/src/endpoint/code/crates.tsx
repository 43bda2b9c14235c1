/** The crates that a handler uses. */
import { useId } from 'preact/hooks';
import { Button } from '../../base/controls.js';
import type { Draft } from './draft.js';
import { type Crate, doubleCrate } from './source.js';

interface CratesProps {
  readonly draft: Draft;
  readonly isReadOnly: boolean;
}

const NONE: Crate = { name: '', version: '', features: '', rest: {} };

export function Crates({ draft, isReadOnly }: CratesProps) {
  const { crates } = draft.written.value;
  const double = doubleCrate(crates);
  const change = (at: number, to: Partial<Crate>) =>
    draft.write({ crates: crates.map((crate, index) => (index === at ? { ...crate, ...to } : crate)) });
  return (
    <section class="card" aria-label="Crates">
      <header>
        <h2>Crates</h2>
        {!isReadOnly && (
          <Button isSmall onClick={() => draft.write({ crates: [...crates, NONE] })}>
            Add a crate
          </Button>
        )}
      </header>
      <div class="pad-in stack tight">
        {crates.length === 0 && (
          <p class="muted">
            None besides the SDK and what it brings. Crates are of the registry, with a version as in Cargo.
          </p>
        )}
        {crates.map((crate, index) => (
          <CrateRow
            key={index}
            crate={crate}
            isReadOnly={isReadOnly}
            onInput={(to) => change(index, to)}
            onRemove={() => draft.write({ crates: crates.filter((_, at) => at !== index) })}
          />
        ))}
        {double !== undefined && (
          <p class="problem" role="alert">
            {double} is there twice; only the last one counts.
          </p>
        )}
      </div>
    </section>
  );
}

interface CrateRowProps {
  readonly crate: Crate;
  readonly isReadOnly: boolean;
  readonly onInput: (change: Partial<Crate>) => void;
  readonly onRemove: () => void;
}

function CrateRow({ crate, isReadOnly, onInput, onRemove }: CrateRowProps) {
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
        value={crate[name]}
        onInput={(event) => onInput({ [name]: event.currentTarget.value })}
      />
    </div>
  );
  return (
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
  );
}
