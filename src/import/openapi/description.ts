/** Descriptions, as endpoints and collections have them. */
import type { Warn } from '../warnings.js';

const MAX_LENGTH = 65_536;

/** The first text that says something, or null. One that is too long loses its end, and a warning says so. */
export function descriptionFrom(texts: readonly unknown[], label: string, warn: Warn): string | null {
  const text = texts.find((value): value is string => typeof value === 'string' && value.trim() !== '');
  if (text === undefined) return null;
  if (text.length <= MAX_LENGTH) return text;
  warn('descriptions', `${label}: the description is cut: it has more than ${MAX_LENGTH} characters`);
  // Not between the halves of one character.
  return `${text.slice(0, MAX_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
