/** Fields for the settings of a service type. */

import { Check, SelectField, TextArea, TextField } from '../base/controls.js';
import type { ProblemAt } from '../base/form.js';
import { SecretField, SecretsField } from './secret-field.js';
import {
  isMain,
  type NamedSecret,
  type SecretInput,
  type Setting,
  type StoredConfig,
  type Typed,
  type TypedConfig,
} from './settings.js';

interface ConfigFormProps {
  readonly settings: readonly Setting[];
  readonly typed: TypedConfig;
  /** Undefined: of a new service. */
  readonly stored: StoredConfig | undefined;
  readonly onChange: (typed: TypedConfig) => void;
  readonly problemAt: ProblemAt;
}

export function ConfigForm({ settings, typed, stored, onChange, problemAt }: ConfigFormProps) {
  const fields = (shown: readonly Setting[]) => (
    <div class="settings">
      {shown.map((setting) => (
        <SettingField
          key={setting.name}
          setting={setting}
          value={typed[setting.name] ?? ''}
          isStored={stored?.[setting.name] !== undefined && stored[setting.name] !== null}
          problem={problemAt(`config.${setting.name}`)}
          onChange={(value) => onChange({ ...typed, [setting.name]: value })}
        />
      ))}
    </div>
  );
  const others = settings.filter((setting) => !isMain(setting));
  const hasProblem = others.some(({ name }) => problemAt(`config.${name}`) !== undefined);
  return (
    <>
      {fields(settings.filter(isMain))}
      {others.length > 0 && (
        <details class="more" open={hasProblem}>
          <summary>More settings ({others.length})</summary>
          {fields(others)}
        </details>
      )}
    </>
  );
}

interface SettingFieldProps {
  readonly setting: Setting;
  readonly value: Typed;
  readonly isStored: boolean;
  readonly problem: string | undefined;
  readonly onChange: (value: Typed) => void;
}

function SettingField({ setting, value, isStored, problem, onChange }: SettingFieldProps) {
  const { kind, label, description, isRequired, fallback, options, min, max } = setting;
  const text = typeof value === 'string' ? value : '';
  const shared = { label, problem, ...(description !== undefined && { hint: description }) };
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
      return (
        <TextArea {...shared} hint={description ?? 'One a line'} rows={3} value={text} onInput={onChange} />
      );
    case 'choice':
      return <SelectField {...shared} options={options} value={text} onChange={onChange} />;
    case 'flag':
      if (fallback === undefined)
        return <SelectField {...shared} options={THREE_WAYS} value={text} onChange={onChange} />;
      return (
        <div class="field">
          <Check
            label={label}
            hint={description}
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
  readonly options: readonly string[];
  readonly value: readonly string[];
  readonly onChange: (value: readonly string[]) => void;
}

function Choices({ label, hint, problem, options, value, onChange }: ChoicesProps) {
  return (
    <fieldset class="choices">
      <legend>{label}</legend>
      <div class="actions">
        {options.map((option) => (
          <Check
            key={option}
            label={option}
            isChecked={value.includes(option)}
            onChange={(isChecked) =>
              onChange(options.filter((one) => (one === option ? isChecked : value.includes(one))))
            }
          />
        ))}
      </div>
      {problem !== undefined && <div class="problem">{problem}</div>}
      {hint !== undefined && <div class="hint">{hint}</div>}
    </fieldset>
  );
}
