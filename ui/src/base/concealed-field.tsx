import { Field } from './controls.js';

interface ConcealedFieldProps {
  readonly label: string;
  readonly value: string;
  readonly problem: string | undefined;
  readonly onInput: (value: string) => void;
}

/** A secret of one or many lines, such as a key in PEM: it is not legible over a shoulder. */
export function ConcealedField({ label, value, problem, onInput }: ConcealedFieldProps) {
  return (
    <Field label={label} problem={problem} hint="It may have several lines. It is never shown again.">
      {(attributes) => (
        <textarea
          class="input mono concealed"
          rows={3}
          spellcheck={false}
          autocomplete="off"
          {...attributes}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
