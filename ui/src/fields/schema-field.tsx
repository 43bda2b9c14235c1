/** A field of a form, by what its schema says of it. */
import { Check, SelectField, TextArea, TextField } from '../base/controls.js';
import type { Field } from './schema.js';
import { SecretField, SecretsField } from './secret-field.js';
import type { FieldInput, NamedSecret, SecretInput } from './values.js';

interface SchemaFieldProps {
  readonly field: Field;
  readonly value: FieldInput;
  /** Whether there is a secret, which is not shown; only for secrets. */
  readonly isStored?: boolean;
  readonly problem: string | undefined;
  readonly onChange: (value: FieldInput) => void;
}

export function SchemaField({ field, value, isStored = false, problem, onChange }: SchemaFieldProps) {
  const { kind, label, hint, isRequired, fallback, options, min, max } = field;
  const text = typeof value === 'string' ? value : '';
  const shared = { label, problem, ...(hint !== undefined && { hint }) };
  switch (kind) {
    case 'secret':
      return <SecretField {...shared} value={value as SecretInput} isStored={isStored} onChange={onChange} />;
    case 'secrets':
      return <SecretsField {...shared} value={value as readonly NamedSecret[]} onChange={onChange} />;
    case 'choices':
      return <Choices {...shared} options={options} value={value as readonly string[]} onChange={onChange} />;
    case 'area':
      return <TextArea {...shared} rows={4} value={text} onInput={onChange} />;
    case 'list':
    case 'headers': {
      const rows = Math.max(3, text.split('\n').length);
      return <TextArea {...shared} hint={hint ?? 'One a line'} rows={rows} value={text} onInput={onChange} />;
    }
    case 'choice':
      return <SelectField {...shared} options={options} value={text} onChange={onChange} />;
    case 'check':
      return (
        <Check
          label={label}
          hint={hint}
          isChecked={text === 'true'}
          onChange={(isChecked) => onChange(isChecked ? 'true' : '')}
        />
      );
    case 'flag':
      if (fallback === undefined)
        return <SelectField {...shared} options={THREE_WAYS} value={text} onChange={onChange} />;
      return (
        <div class="field">
          <Check
            label={label}
            hint={hint}
            isChecked={text === 'true'}
            onChange={(isChecked) => onChange(String(isChecked))}
          />
          {problem !== undefined && <div class="problem">{problem}</div>}
        </div>
      );
    default:
      return (
        <TextField
          {...shared}
          type={kind === 'number' ? 'number' : 'text'}
          required={isRequired}
          autocomplete="off"
          {...(min !== undefined && { min })}
          {...(max !== undefined && { max })}
          value={text}
          onInput={onChange}
        />
      );
  }
}

const THREE_WAYS = [
  { value: '', label: 'Default' },
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
];

interface ChoicesProps {
  readonly label: string;
  readonly hint?: string;
  readonly problem: string | undefined;
  readonly options: Field['options'];
  readonly value: readonly string[];
  readonly onChange: (value: readonly string[]) => void;
}

function Choices({ label, hint, problem, options, value, onChange }: ChoicesProps) {
  const change = (changed: string, isChosen: boolean) =>
    onChange(
      options
        .map((option) => option.value)
        .filter((one) => (one === changed ? isChosen : value.includes(one))),
    );
  return (
    <fieldset class="choices">
      <legend>{label}</legend>
      <div class="actions">
        {options.map((option) => (
          <Check
            key={option.value}
            label={option.label}
            isChecked={value.includes(option.value)}
            onChange={(isChecked) => change(option.value, isChecked)}
          />
        ))}
      </div>
      {problem !== undefined && <div class="problem">{problem}</div>}
      {hint !== undefined && <div class="hint">{hint}</div>}
    </fieldset>
  );
}
