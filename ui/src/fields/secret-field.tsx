/** Fields for secrets. What is stored is never shown; a field that is left empty keeps it. */
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Button, Field } from '../base/controls.js';
import type { NamedSecret, SecretInput } from './values.js';

interface SecretFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly problem: string | undefined;
  readonly value: SecretInput;
  readonly isStored: boolean;
  readonly onChange: (value: SecretInput) => void;
}

export function SecretField({ label, hint, problem, value, isStored, onChange }: SecretFieldProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(attributes) => (
        <SecretInputs
          attributes={attributes}
          label={label}
          value={value}
          isStored={isStored}
          onChange={onChange}
        />
      )}
    </Field>
  );
}

interface SecretInputsProps {
  readonly attributes: object;
  readonly label: string;
  readonly value: SecretInput;
  readonly isStored: boolean;
  readonly onChange: (value: SecretInput) => void;
}

function SecretInputs({ attributes, label, value, isStored, onChange }: SecretInputsProps) {
  const { how, text } = value;
  const mayRefer = may('secrets:write');
  const ways = [
    ...(isStored ? ([['keep', 'Keep it']] as const) : []),
    ['value', isStored ? 'Another value' : 'A value'] as const,
    ...(mayRefer || how === 'secret' ? ([['secret', 'A secret by name']] as const) : []),
    ...(isStored ? ([['none', 'None']] as const) : []),
  ];
  return (
    <div class="secret">
      {ways.length > 1 && (
        <select
          class="input"
          aria-label={`${label}: how`}
          value={how}
          onChange={(event) => onChange({ how: event.currentTarget.value as SecretInput['how'], text: '' })}
        >
          {ways.map(([way, name]) => (
            <option key={way} value={way}>
              {name}
            </option>
          ))}
        </select>
      )}
      {how === 'secret' ? (
        <SecretNames
          attributes={attributes}
          value={text}
          onChange={(name) => onChange({ how, text: name })}
        />
      ) : (
        <input
          class="input"
          type="password"
          autocomplete="new-password"
          placeholder={
            how === 'keep' ? 'Stored, and not shown' : how === 'none' ? 'Will be removed' : undefined
          }
          {...attributes}
          value={text}
          onInput={({ currentTarget }) =>
            // Typing says that there is another one.
            onChange({
              how: currentTarget.value === '' && isStored ? 'keep' : 'value',
              text: currentTarget.value,
            })
          }
        />
      )}
    </div>
  );
}

function SecretNames({
  attributes,
  value,
  onChange,
}: {
  readonly attributes: object;
  readonly value: string;
  readonly onChange: (name: string) => void;
}) {
  const { data = [] } = useQuery('GET /api/secrets', may('secrets:read') ? {} : undefined);
  const names = [...new Set([...data.map(({ name }) => name), ...(value === '' ? [] : [value])])];
  return (
    <select
      class="input"
      {...attributes}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      <option value="">{names.length > 0 ? 'Choose one' : 'There are none yet'}</option>
      {names.map((name) => (
        <option key={name} value={name}>
          {name}
        </option>
      ))}
    </select>
  );
}

interface SecretsFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly problem: string | undefined;
  readonly value: readonly NamedSecret[];
  readonly onChange: (value: readonly NamedSecret[]) => void;
}

/** Several, each with a name. */
export function SecretsField({ label, hint, problem, value, onChange }: SecretsFieldProps) {
  const change = (at: number, one: NamedSecret) =>
    onChange(value.map((old, index) => (index === at ? one : old)));
  return (
    <fieldset class="choices">
      <legend>{label}</legend>
      {value.map((one, at) => (
        <div key={at} class="named-secret">
          <input
            class="input"
            aria-label={`${label}: name ${at + 1}`}
            placeholder="Name"
            spellcheck={false}
            value={one.name}
            onInput={(event) => change(at, { ...one, name: event.currentTarget.value })}
          />
          <SecretInputs
            attributes={{ 'aria-label': `${label}: value ${at + 1}` }}
            label={`${label} ${at + 1}`}
            value={one}
            isStored={one.how === 'keep'}
            onChange={(input) => change(at, { name: one.name, ...input })}
          />
          <Button
            isSmall
            label={`Remove ${one.name || at + 1}`}
            onClick={() => onChange(value.filter((_, index) => index !== at))}
          >
            ✕
          </Button>
        </div>
      ))}
      <div>
        <Button isSmall onClick={() => onChange([...value, { name: '', how: 'value', text: '' }])}>
          Add
        </Button>
      </div>
      {problem !== undefined && <div class="problem">{problem}</div>}
      {hint !== undefined && <div class="hint">{hint}</div>}
    </fieldset>
  );
}
