/** Settings of the service types, read from the description of the API, and what a form has typed of them. */
import { useQuery } from '../api/query.js';

export type SettingKind =
  | 'text'
  | 'area'
  | 'number'
  | 'flag'
  | 'choice'
  | 'choices'
  | 'list'
  | 'secret'
  | 'secrets';

export interface Setting {
  readonly name: string;
  readonly label: string;
  readonly kind: SettingKind;
  readonly isRequired: boolean;
  readonly description: string | undefined;
  readonly fallback: unknown;
  readonly options: readonly string[];
  readonly min: number | undefined;
  readonly max: number | undefined;
}

/** What is typed of a secret: what is stored is never shown. */
export interface SecretInput {
  readonly how: 'keep' | 'value' | 'secret' | 'none';
  readonly text: string;
}
export interface NamedSecret extends SecretInput {
  readonly name: string;
}
/** A text; or, of several values, a list; or secrets. */
export type Typed = string | readonly string[] | SecretInput | readonly NamedSecret[];
export type TypedConfig = Readonly<Record<string, Typed>>;
export type StoredConfig = Readonly<Record<string, unknown>>;

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly 'x-secret'?: boolean;
}

/** The settings of a type; undefined until they are read. */
export function useSettings(type: string) {
  const result = useQuery('GET /api/openapi.json', {});
  const { schemas } = (result.data?.['components'] ?? {}) as {
    readonly schemas?: Readonly<Record<string, Schema>>;
  };
  const title = `${type.charAt(0).toUpperCase()}${type.slice(1)}Config`;
  const schema = schemas?.[title];
  return { ...result, data: schema && settingsOf(schema) };
}

function settingsOf({ properties = {}, required = [] }: Schema): Setting[] {
  return Object.entries(properties).map(([name, schema]) => {
    const description = (schema.description ?? '').replaceAll('`', '');
    return {
      name,
      label: labelOf(name),
      kind: kindOf(schema),
      isRequired: required.includes(name) && schema.default === undefined,
      description: description === '' ? undefined : description,
      fallback: schema.default,
      options: schema.enum ?? schema.items?.enum ?? [],
      min: schema.minimum,
      max: schema.maximum,
    };
  });
}

function kindOf(schema: Schema): SettingKind {
  const types = [schema.type ?? []].flat();
  if (schema['x-secret']) return 'secret';
  if (types.includes('object')) return 'secrets';
  if (types.includes('array')) return schema.items?.enum ? 'choices' : 'list';
  if (types.includes('integer')) return 'number';
  if (types.includes('boolean')) return 'flag';
  if (schema.enum) return 'choice';
  return schema.format === 'text' ? 'area' : 'text';
}

const CAPITALS = /\b(api|ssl|tls|uri|url|mb)\b/gi;

/** A name of a setting as people read it, such as `SSL mode`. */
export function labelOf(name: string): string {
  const words = name.replaceAll('_', ' ').replace(CAPITALS, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Whether a setting is among those that one looks at first. */
export function isMain({ kind, isRequired, name }: Setting): boolean {
  return isRequired || kind === 'secret' || /^(host|servers|port|username)$/.test(name);
}

/** What a form begins with. @param config as it is stored; undefined: of a new service */
export function typedOf(settings: readonly Setting[], config: StoredConfig | undefined): TypedConfig {
  return Object.fromEntries(settings.map((setting) => [setting.name, typedValue(setting, config)]));
}

function typedValue({ name, kind, fallback }: Setting, config: StoredConfig | undefined): Typed {
  const value = config?.[name] ?? fallback;
  if (kind === 'secret') return typedSecret(config?.[name]);
  if (kind === 'secrets')
    return Object.entries((value ?? {}) as StoredConfig).map(([key, one]) => ({
      name: key,
      ...typedSecret(one),
    }));
  if (kind === 'choices') return (value ?? []) as string[];
  if (kind === 'list') return ((value ?? []) as string[]).join('\n');
  return value === undefined || value === null ? '' : String(value);
}

function typedSecret(stored: unknown): SecretInput {
  if (stored === undefined || stored === null) return { how: 'value', text: '' };
  if (typeof stored === 'object')
    return { how: 'secret', text: String((stored as { secret: string }).secret) };
  return { how: 'keep', text: '' };
}

/**
 * The settings to send: of a new service those that are given, of another one those that have changed; null sets one
 * back.
 */
export function configOf(
  settings: readonly Setting[],
  typed: TypedConfig,
  stored: StoredConfig | undefined,
): Record<string, unknown> {
  const before = typedOf(settings, stored);
  return Object.fromEntries(
    settings.flatMap((setting): [string, unknown][] => {
      const now = typed[setting.name] ?? '';
      if (stored && JSON.stringify(now) === JSON.stringify(before[setting.name])) return [];
      const value = sentOf(setting, now, stored);
      if (value !== undefined) return [[setting.name, value]];
      return stored && stored[setting.name] !== undefined && !isKept(now) ? [[setting.name, null]] : [];
    }),
  );
}

/** Undefined: not given. */
function sentOf({ name, kind }: Setting, typed: Typed, stored: StoredConfig | undefined): unknown {
  if (kind === 'secret') return secretValue(typed as SecretInput, undefined);
  if (kind === 'secrets') {
    const before = (stored?.[name] ?? {}) as StoredConfig;
    const members = (typed as readonly NamedSecret[])
      .filter((one) => one.name !== '')
      .map((one) => [one.name, secretValue(one, before[one.name]) ?? '']);
    return members.length > 0 ? Object.fromEntries(members) : undefined;
  }
  if (kind === 'choices') return (typed as readonly string[]).length === 0 ? undefined : typed;
  const text = typed as string;
  if (kind === 'list') {
    const lines = text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
    return lines.length > 0 ? lines : undefined;
  }
  if (text === '') return undefined;
  if (kind === 'number') return Number.isNaN(Number(text)) ? text : Number(text);
  return kind === 'flag' ? text === 'true' : text;
}

/** @param stored what a member is sent as that is kept: maps are replaced as a whole */
function secretValue({ how, text }: SecretInput, stored: unknown): unknown {
  if (how === 'keep') return stored;
  if (how === 'none' || text === '') return undefined;
  return how === 'secret' ? { secret: text } : text;
}

function isKept(typed: Typed): boolean {
  return (
    typeof typed === 'object' &&
    'how' in typed &&
    (typed.how === 'keep' || (typed.how === 'value' && typed.text === ''))
  );
}
