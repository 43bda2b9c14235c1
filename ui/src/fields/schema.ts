/** What a form asks for, read from the JSON Schemas in the description of the API. */
import { useQuery } from '../api/query.js';

/**
 * How a value is typed. A `check` is true or not given; a `list` has one item in each line; `headers` are lines such as
 * `Name: value`.
 */
export type FieldKind =
  | 'text'
  | 'area'
  | 'number'
  | 'flag'
  | 'check'
  | 'choice'
  | 'choices'
  | 'list'
  | 'headers'
  | 'secret'
  | 'secrets';

export interface Field {
  /** Where its value is, such as `request.set`; empty where it is the whole value. */
  readonly path: string;
  readonly label: string;
  readonly kind: FieldKind;
  readonly hint: string | undefined;
  readonly isRequired: boolean;
  readonly isNumber: boolean;
  readonly fallback: unknown;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly unit: Unit | undefined;
}

/** What a number counts. */
type Unit = 'seconds' | 'milliseconds' | 'bytes';

/** What the schema of a field does not say, or not for people. */
export interface FieldHints {
  readonly label: string;
  readonly hint?: string;
  readonly unit?: Unit;
  /** Labels of choices; that of the empty one says what counts when none is given. */
  readonly options?: Readonly<Record<string, string>>;
}

export interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly (string | number)[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly format?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly 'x-secret'?: boolean;
}

/** A schema that the description of the API lists; undefined until it is read. @param title such as `Domain` */
export function useSchema(title: string) {
  const result = useQuery('GET /api/openapi.json', {});
  const { schemas } = (result.data?.['components'] ?? {}) as {
    readonly schemas?: Readonly<Record<string, Schema>>;
  };
  return { ...result, data: schemas?.[title] };
}

type HintsByPath = Readonly<Record<string, FieldHints>>;

/** The fields of a value, with those of its parts; none for what no field can show, such as a list of objects. */
export function fieldsOf(schema: Schema, hints: HintsByPath = {}, path = '', isRequired = false): Field[] {
  const { properties, required = [] } = schema;
  if (properties && schema['x-secret'] !== true)
    return Object.entries(properties).flatMap(([name, member]) =>
      fieldsOf(member, hints, path === '' ? name : `${path}.${name}`, required.includes(name)),
    );
  const given = hints[path];
  const kind = kindOf(schema);
  if (kind === undefined) return [];
  const description = schema.description?.replaceAll('`', '') || undefined;
  const isOptional = !isRequired && schema.default === undefined;
  const values = [...(schema.enum && isOptional ? [''] : []), ...(schema.enum ?? schema.items?.enum ?? [])];
  return [
    {
      path,
      label: given?.label ?? labelOf(path.split('.').at(-1) ?? ''),
      kind,
      hint: given ? given.hint : description,
      isRequired: isRequired && schema.default === undefined,
      isNumber: typesOf(schema).includes('integer'),
      fallback: schema.default,
      options: values
        .map(String)
        .map((value) => ({ value, label: given?.options?.[value] ?? (value || 'Default') })),
      min: schema.minimum,
      max: schema.maximum,
      unit: given?.unit,
    },
  ];
}

function kindOf(schema: Schema): FieldKind | undefined {
  const { items, additionalProperties: members } = schema;
  const types = typesOf(schema);
  if (schema['x-secret']) return 'secret';
  if (types.includes('object')) {
    if (typeof members !== 'object') return undefined;
    return members['x-secret'] ? 'secrets' : 'headers';
  }
  if (types.includes('array')) {
    if (items?.enum) return 'choices';
    return items && typesOf(items).includes('string') ? 'list' : undefined;
  }
  if (schema.enum) return 'choice';
  if (types.includes('integer')) return 'number';
  if (types.includes('boolean')) return 'flag';
  if (!types.includes('string')) return undefined;
  return schema.format === 'text' ? 'area' : 'text';
}

const typesOf = ({ type = [] }: Schema) => [type].flat();

const CAPITALS = /\b(api|ssl|tls|uri|url|mb)\b/gi;

/** A name of a setting as people read it, such as `SSL mode`. */
export function labelOf(name: string): string {
  const words = name.replaceAll('_', ' ').replace(CAPITALS, (word) => word.toUpperCase());
  return words.charAt(0).toUpperCase() + words.slice(1);
}
