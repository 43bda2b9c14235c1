/** What can be wrong with a value, in the words that all answers use. */
import { FORMATS } from './formats.js';

/** What is wrong with a value, and where in it. */
export interface Problem {
  /** The keys from the root of the value to the invalid part. */
  readonly path: readonly string[];
  readonly message: string;
}

/** Returns the first problem of a value, or undefined when it is valid. */
export type Check = (value: unknown) => Problem | undefined;

/** The value of the keyword `refine`: says what is wrong with a value; undefined when nothing is. */
export type Refine<T> = (value: T) => string | undefined;

/** A problem as one line: `body.host: must be a hostname ...`. */
export function describeProblem(root: string, { path, message }: Problem): string {
  return `${placeOf(root, path)}: ${message}`;
}

/** A key that would not be told from several is in brackets: `body.files["../x.rs"]`. */
function placeOf(root: string, path: readonly string[]): string {
  return path.reduce(
    (place, key) => place + (/[."[\]]|^$/.test(key) ? `[${JSON.stringify(key)}]` : `.${key}`),
    root,
  );
}

/** @param path of the object */
export function missingMember(path: readonly string[], name: string): Problem {
  return { path: [...path, name], message: 'is required' };
}

/** @param path of the object */
export function unknownMember(path: readonly string[], name: string, known: readonly string[]): Problem {
  return { path: [...path, name], message: `is not accepted; possible are ${known.join(', ')}` };
}

/** What a value breaks: a keyword of JSON Schema. */
interface Broken {
  readonly keyword: string;
  /** The value of the keyword. */
  readonly schema?: unknown;
  readonly data?: unknown;
  /** The schema that the keyword is in. */
  readonly parentSchema?: Readonly<Record<string, unknown>> | undefined;
  /** The problem in the words of a library, for other keywords. */
  readonly message?: string | undefined;
}

/** Says in our words what is wrong. */
export function reason({ keyword, schema, data, parentSchema, message }: Broken): string {
  switch (keyword) {
    case 'type':
      return `must be ${[schema].flat().map(withArticle).join(' or ')}, not ${kindOf(data)}`;
    case 'enum':
      return `must be one of ${(schema as unknown[]).join(', ')}, not ${shown(data)}`;
    case 'format':
      return FORMATS[String(schema)]?.(String(data)) ?? `must be a ${String(schema)}`;
    case 'refine':
      return (schema as Refine<unknown>)(data) ?? '';
    case 'minLength':
      return schema === 1 ? 'must not be empty' : `must have at least ${String(schema)} characters`;
    case 'maxLength':
      return `must have at most ${String(schema)} characters`;
    case 'not':
      return `is not accepted: ${String(parentSchema?.['description'] ?? 'leave it out')}`;
    case 'pattern':
      return parentSchema?.['description'] === undefined
        ? `must match ${String(schema)}`
        : `is not valid: ${String(parentSchema['description'])}`;
    case 'maxItems':
      return `must have at most ${String(schema)} items`;
    case 'minItems':
      return schema === 1 ? 'must not be empty' : `must have at least ${String(schema)} items`;
    case 'minProperties':
      return `must have at least ${String(schema)} of ${membersOf(parentSchema)}`;
    case 'maxProperties':
      return `must have at most ${String(schema)} of ${membersOf(parentSchema)}`;
    case 'minimum':
      return `must be at least ${String(schema)}`;
    case 'maximum':
      return `must be at most ${String(schema)}`;
    case 'anyOf':
      return `needs ${(schema as { required?: string[] }[]).map(({ required }) => required?.join(' and ')).join(' or ')}`;
    default:
      return message ?? `breaks the rule "${keyword}"`;
  }
}

/** Characters of a value in a message. */
const MAX_SHOWN = 100;

/** A value in a message: its beginning, when it is long. */
export function shown(value: unknown): string {
  const text = String(JSON.stringify(value));
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function membersOf(schema: Broken['parentSchema']): string {
  const names = Object.keys((schema?.['properties'] ?? {}) as object);
  return names.length > 0 ? `its members ${names.join(', ')}` : 'its members';
}

function withArticle(type: unknown): string {
  if (type === 'null') return 'null';
  return /^[aeiou]/.test(String(type)) ? `an ${String(type)}` : `a ${String(type)}`;
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return withArticle(Array.isArray(value) ? 'array' : typeof value);
}
