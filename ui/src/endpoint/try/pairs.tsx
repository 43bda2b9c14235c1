/** Names with values, one a row; there is always an empty row to type in. */
import type { Pair } from './trial.js';

interface PairsProps {
  readonly label: string;
  /** Of one row, for those who do not see the columns. */
  readonly of: string;
  readonly pairs: readonly Pair[];
  readonly onInput: (pairs: readonly Pair[]) => void;
}

export function Pairs({ label, of, pairs, onInput }: PairsProps) {
  const rows = [...pairs, { name: '', value: '' }];
  const change = (at: number, to: Partial<Pair>) => {
    const changed = rows.map((pair, index) => (index === at ? { ...pair, ...to } : pair));
    onInput(changed.filter(({ name, value }) => name !== '' || value !== ''));
  };
  return (
    <fieldset class="pairs">
      <legend>{label}</legend>
      {rows.map((pair, index) => (
        <div key={index} class="pair">
          <input
            class="input mono"
            aria-label={`Name of ${of} ${index + 1}`}
            placeholder="name"
            spellcheck={false}
            autocomplete="off"
            value={pair.name}
            onInput={(event) => change(index, { name: event.currentTarget.value })}
          />
          <input
            class="input mono"
            aria-label={`Value of ${of} ${index + 1}`}
            placeholder="value"
            spellcheck={false}
            autocomplete="off"
            value={pair.value}
            onInput={(event) => change(index, { value: event.currentTarget.value })}
          />
        </div>
      ))}
    </fieldset>
  );
}
