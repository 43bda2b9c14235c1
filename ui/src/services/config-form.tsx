/** The settings of a service: fields of its type, and what is sent of them. */
import type { ProblemAt } from '../base/form.js';
import { type Field, fieldsOf, useSchema } from '../fields/schema.js';
import { SchemaField } from '../fields/schema-field.js';
import { type FieldInput, sentOf, typedOf } from '../fields/values.js';

export type TypedConfig = Readonly<Record<string, FieldInput>>;
export type StoredConfig = Readonly<Record<string, unknown>>;

/** The settings of a type; undefined until they are read. */
export function useSettings(type: string) {
  const result = useSchema(`${type.charAt(0).toUpperCase()}${type.slice(1)}Config`);
  return { ...result, data: result.data && fieldsOf(result.data) };
}

/** What a form begins with. @param config as it is stored; undefined: of a new service */
export function typedConfig(settings: readonly Field[], config: StoredConfig | undefined): TypedConfig {
  return Object.fromEntries(settings.map((field) => [field.path, typedOf(field, config?.[field.path])]));
}

/**
 * The settings to send: of a new service those that are given, of another one those that have changed; null sets one
 * back.
 */
export function configOf(
  settings: readonly Field[],
  typed: TypedConfig,
  stored: StoredConfig | undefined,
): Record<string, unknown> {
  const before = typedConfig(settings, stored);
  return Object.fromEntries(
    settings.flatMap((field): [string, unknown][] => {
      const name = field.path;
      const now = typed[name] ?? '';
      if (stored && JSON.stringify(now) === JSON.stringify(before[name])) return [];
      const value = sentOf(field, now, stored?.[name]);
      if (value !== undefined) return [[name, value]];
      return stored?.[name] !== undefined && !isKept(now) ? [[name, null]] : [];
    }),
  );
}

function isKept(typed: FieldInput): boolean {
  return (
    typeof typed === 'object' &&
    'how' in typed &&
    (typed.how === 'keep' || (typed.how === 'value' && typed.text === ''))
  );
}

/** Whether a setting is among those that one looks at first. */
function isMain({ kind, isRequired, path }: Field): boolean {
  return isRequired || kind === 'secret' || /^(host|servers|port|username)$/.test(path);
}

interface ConfigFormProps {
  readonly settings: readonly Field[];
  readonly typed: TypedConfig;
  /** Undefined: of a new service. */
  readonly stored: StoredConfig | undefined;
  readonly onChange: (typed: TypedConfig) => void;
  readonly problemAt: ProblemAt;
}

export function ConfigForm({ settings, typed, stored, onChange, problemAt }: ConfigFormProps) {
  const fields = (shown: readonly Field[]) => (
    <div class="settings">
      {shown.map((field) => (
        <SchemaField
          key={field.path}
          field={field}
          value={typed[field.path] ?? ''}
          isStored={stored?.[field.path] !== undefined && stored[field.path] !== null}
          problem={problemAt(`config.${field.path}`)}
          onChange={(value) => onChange({ ...typed, [field.path]: value })}
        />
      ))}
    </div>
  );
  const others = settings.filter((field) => !isMain(field));
  const hasProblem = others.some(({ path }) => problemAt(`config.${path}`) !== undefined);
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
