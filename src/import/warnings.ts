/**
 * Warnings of an import. There may be one for each of thousands of operations: the first of each kind are listed and
 * the rest counted, so that no kind hides another.
 */
const LISTED_PER_KIND = 50;
/** Length of one warning, characters: it may quote untrusted text. */
const MAX_LENGTH = 1000;

/** The kinds in the order of the list, with the text that follows "… and 7 more". */
const KINDS = {
  handlers: 'handlers of no operation',
  manifest: 'unknown keys of the manifest',
  files: 'files that are not read',
  'left-out': 'operations that are left out',
  servers: 'ignored servers',
  references: 'operations by reference',
  parameters: 'path parameters that do not match their description',
  styles: 'parameters and fields in unsupported styles',
  bodies: 'bodies that are not parsed',
  descriptions: 'truncated descriptions',
} as const;

export type WarningKind = keyof typeof KINDS;
export type Warn = (kind: WarningKind, warning: string) => void;

export class Warnings {
  readonly #kinds = new Map<WarningKind, { readonly listed: string[]; more: number }>();

  readonly add: Warn = (kind, warning) => this.addEach(kind, [warning], (text) => text);

  /** Calls `format`, which may be slow, only for the warnings that are listed. */
  addEach<T>(kind: WarningKind, items: readonly T[], format: (item: T) => string): void {
    const warnings = this.#kinds.get(kind) ?? { listed: [], more: 0 };
    this.#kinds.set(kind, warnings);
    const listed = items.slice(0, LISTED_PER_KIND - warnings.listed.length);
    warnings.listed.push(...listed.map((item) => truncated(format(item))));
    warnings.more += items.length - listed.length;
  }

  list(): readonly string[] {
    return Object.entries(KINDS).flatMap(([kind, description]) => {
      const { listed = [], more = 0 } = this.#kinds.get(kind as WarningKind) ?? {};
      return more > 0 ? [...listed, `… and ${more} more ${description}`] : listed;
    });
  }
}

function truncated(warning: string): string {
  // Does not split a surrogate pair.
  return warning.length <= MAX_LENGTH
    ? warning
    : `${warning.slice(0, MAX_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`;
}
