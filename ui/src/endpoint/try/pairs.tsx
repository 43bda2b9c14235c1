/** Names with values, one a row; there is always an empty row to type in. */
import { Button } from '../../base/controls.js';
import { Visible } from '../../base/visible.js';
import { isNameless, type Pair } from './trial.js';

interface PairsProps {
  readonly label: string;
  /** What one row is, for those who do not see the columns. */
  readonly of: string;
  readonly pairs: readonly Pair[];
  /** Others that there can be. */
  readonly offered?: readonly Pair[];
  readonly onInput: (pairs: readonly Pair[]) => void;
}

export function Pairs({ label, of, pairs, offered = [], onInput }: PairsProps) {
  const isEmpty = ({ name, value }: Pair) => name === '' && value === '';
  const last = pairs.at(-1);
  const rows = last && isEmpty(last) ? pairs : [...pairs, { name: '', value: '' }];
  // A row that is emptied stays: one may be about to type another name.
  const change = (at: number, to: Partial<Pair>) =>
    onInput(rows.map((pair, index) => (index === at ? { ...pair, ...to } : pair)));
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
            aria-invalid={isNameless(pair)}
            title={isNameless(pair) ? 'Without a name it is not sent' : undefined}
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
      <Offered
        of={of}
        pairs={offered.filter(({ name }) => !pairs.some((pair) => pair.name === name))}
        onAdd={(pair) => onInput([...pairs.filter((one) => !isEmpty(one)), pair])}
      />
    </fieldset>
  );
}

interface OfferedProps {
  readonly of: string;
  readonly pairs: readonly Pair[];
  readonly onAdd: (pair: Pair) => void;
}

/** Buttons with the names of other pairs: each adds its row. */
function Offered({ of, pairs, onAdd }: OfferedProps) {
  if (pairs.length === 0) return null;
  return (
    <div class="actions">
      {pairs.map((pair) => (
        <Button
          key={pair.name}
          isSmall
          look="plain"
          label={`Add the ${of} ${pair.name}`}
          onClick={() => onAdd(pair)}
        >
          + <Visible text={pair.name} isOneLine />
        </Button>
      ))}
    </div>
  );
}
