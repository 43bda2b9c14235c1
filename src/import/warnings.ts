/** Warnings of an import. There may be one for each of thousands of operations, and they may quote untrusted text. */

/** Most warnings of one document or bundle. */
const MAX_WARNINGS = 10_000;
/** Length of one warning, characters. */
const MAX_LENGTH = 20_000;

/** The kinds, with the text that follows "… and 7 more". */
export const WARNING_KINDS = {
  handlers: 'handlers of no operation',
  manifest: 'unknown keys of the manifest',
  files: 'files that are not read',
  document: 'remarks about the document',
  flaws: 'flaws of the document',
  references: 'references that cannot be followed',
  'left-out': 'operations that are left out',
  routes: 'operations of one route',
  names: 'operations with other names',
  servers: 'ignored servers',
  parameters: 'remarks about parameters',
  styles: 'parameters in styles that they cannot have',
  bodies: 'bodies that are not parsed',
  validation: 'parts of requests that are not validated',
  descriptions: 'changed descriptions',
  replaced: 'endpoints had code that was replaced',
  unhandled: 'endpoints have no handler in the bundle',
  bindings: 'bindings of services',
  target: 'remarks about the collection',
  lost: 'endpoints are no longer in the document',
} as const;

export type WarningKind = keyof typeof WARNING_KINDS;
export type Warn = (kind: WarningKind, text: string) => void;

export interface ImportWarning {
  readonly kind: WarningKind;
  readonly text: string;
}

export class Warnings {
  readonly #limit: number;
  readonly #list: ImportWarning[] = [];
  readonly #more = new Map<WarningKind, number>();

  /** @param limit how many are kept; further ones are counted */
  constructor(limit = MAX_WARNINGS) {
    this.#limit = limit;
  }

  readonly add: Warn = (kind, text) => this.addEach(kind, [text], (each) => each);

  /** Calls `format`, which may be slow, only for the warnings that are kept. */
  addEach<T>(kind: WarningKind, items: readonly T[], format: (item: T) => string): void {
    const kept = items.slice(0, Math.max(0, this.#limit - this.#list.length));
    for (const item of kept) this.#list.push({ kind, text: truncated(format(item)) });
    const more = items.length - kept.length;
    if (more > 0) this.#more.set(kind, (this.#more.get(kind) ?? 0) + more);
  }

  /** Warnings in the order in which they were added, then how many more there were. */
  list(): readonly ImportWarning[] {
    const counts = [...this.#more].map(([kind, more]) => ({ kind, text: moreText(kind, more) }));
    return [...this.#list, ...counts];
  }
}

/** Stands for warnings that are not listed. */
export function moreText(kind: WarningKind, count: number): string {
  return `… and ${count} more ${WARNING_KINDS[kind]}`;
}

function truncated(text: string): string {
  // Does not split a surrogate pair.
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`;
}
