/** What is typed into a field, and the value that it stands for. */
import { headerLines, headersOf } from '../base/header-lines.js';
import type { Field } from './schema.js';

/** What is typed of a secret: what is stored is never shown. */
export interface SecretInput {
  readonly how: 'keep' | 'value' | 'secret' | 'none';
  readonly text: string;
}
export interface NamedSecret extends SecretInput {
  readonly name: string;
}
/** A text; or, of several values, a list; or secrets. */
export type FieldInput = string | readonly string[] | SecretInput | readonly NamedSecret[];

type Members = Readonly<Record<string, unknown>>;

/** What a field begins with. @param stored undefined where there is nothing yet */
export function typedOf({ kind, fallback }: Field, stored: unknown): FieldInput {
  if (kind === 'secret') return typedSecret(stored);
  const value = stored ?? fallback;
  if (kind === 'secrets')
    return Object.entries((value ?? {}) as Members).map(([name, one]) => ({ name, ...typedSecret(one) }));
  if (kind === 'choices') return (value ?? []) as string[];
  if (value === undefined || value === null) return '';
  if (kind === 'list' && Array.isArray(value)) return value.join('\n');
  return kind === 'headers' ? headerLines(value as object) : String(value);
}

function typedSecret(stored: unknown): SecretInput {
  if (stored === undefined || stored === null) return { how: 'value', text: '' };
  if (typeof stored === 'object')
    return { how: 'secret', text: String((stored as { secret: string }).secret) };
  return { how: 'keep', text: '' };
}

/** Undefined: not given. @param stored what the API shows of it */
export function sentOf({ kind, isNumber }: Field, typed: FieldInput, stored?: unknown): unknown {
  if (kind === 'secret') return secretValue(typed as SecretInput, undefined);
  if (kind === 'secrets') {
    const before = (stored ?? {}) as Members;
    const members = (typed as readonly NamedSecret[])
      .filter(({ name }) => name !== '')
      .map((one) => [one.name, secretValue(one, before[one.name]) ?? '']);
    return members.length > 0 ? Object.fromEntries(members) : undefined;
  }
  if (kind === 'choices') return (typed as readonly string[]).length === 0 ? undefined : typed;
  const text = typed as string;
  if (text.trim() === '') return undefined;
  if (kind === 'list')
    return text
      .split('\n')
      .map((line) => line.trim())
      .filter((line) => line !== '');
  if (kind === 'headers') return headersOf(text);
  if (kind === 'flag' || kind === 'check') return text === 'true';
  // The API says what is wrong with what is no number.
  return isNumber && !Number.isNaN(Number(text)) ? Number(text) : text;
}

/** @param stored what a member is sent as that is kept: maps are replaced as a whole */
function secretValue({ how, text }: SecretInput, stored: unknown): unknown {
  if (how === 'keep') return stored;
  if (how === 'none' || text === '') return undefined;
  return how === 'secret' ? { secret: text } : text;
}
