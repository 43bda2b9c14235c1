/** When a credential expires: the choice, and how it is shown. */
import { SelectField, TextField } from './controls.js';
import { At, Badge } from './text.js';

/** Days, a time, or never. */
const CHOICES = [
  { value: '30', label: 'in 30 days' },
  { value: '90', label: 'in 90 days' },
  { value: '365', label: 'in a year' },
  { value: 'at', label: 'at a time …' },
  { value: 'never', label: 'never' },
];
const DAY_MS = 86_400_000;

export interface Expiry {
  readonly choice: string;
  /** A local time; used by the choice `at` only. */
  readonly time: string;
}
export const FIRST_EXPIRY: Expiry = { choice: '90', time: '' };

interface ExpiryFieldsProps {
  readonly value: Expiry;
  readonly onChange: (value: Expiry) => void;
  readonly problem: string | undefined;
}

export function ExpiryFields({ value, onChange, problem }: ExpiryFieldsProps) {
  const isAt = value.choice === 'at';
  return (
    <div class="settings">
      <SelectField
        label="Expires"
        options={CHOICES}
        value={value.choice}
        onChange={(choice) => onChange({ ...value, choice })}
        problem={isAt ? undefined : problem}
      />
      {isAt && (
        <TextField
          label="Time"
          type="datetime-local"
          required
          value={value.time}
          onInput={(time) => onChange({ ...value, time })}
          problem={problem}
        />
      )}
    </div>
  );
}

/** The expiry as the API takes it; null: never. */
export function expiryOf({ choice, time }: Expiry): string | null {
  if (choice === 'never') return null;
  if (choice === 'at') return new Date(time).toISOString();
  return new Date(Date.now() + Number(choice) * DAY_MS).toISOString();
}

export function Expires({ at }: { readonly at: string | null }) {
  if (at === null) return <span class="muted">never</span>;
  return new Date(at).getTime() < Date.now() ? <Badge tone="bad">expired</Badge> : <At at={at} />;
}
