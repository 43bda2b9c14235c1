/**
 * Warnings for the person who sends something to be imported. There may be one for each of thousands of operations:
 * of each kind the first are named and the others counted, so that no kind hides another.
 */
const NAMED = 50;
/** Of one warning, characters. Paths and names come from strangers. */
const MAX_LENGTH = 1000;

/** What the warnings of each kind are about, in words that follow "… and 7 more". Told in this order. */
const KINDS = {
  handlers: 'handlers of no operation',
  manifest: 'keys of the manifest that mean nothing',
  files: 'files that are not read',
  'left-out': 'operations that are left out',
  servers: 'ignored servers',
  references: 'operations by reference',
  parameters: 'path parameters on which path and description do not agree',
  styles: 'parameters and fields whose style is not taken apart',
  bodies: 'bodies that are not taken apart',
  descriptions: 'descriptions that are cut',
} as const;

export type WarningKind = keyof typeof KINDS;
export type Warn = (kind: WarningKind, warning: string) => void;

export class Warnings {
  private readonly kinds = new Map<WarningKind, { readonly named: string[]; more: number }>();

  readonly add: Warn = (kind, warning) => this.addEach(kind, [warning], (text) => text);

  /** Words are made only of those that are named: finding them may take time. */
  addEach<T>(kind: WarningKind, items: readonly T[], tell: (item: T) => string): void {
    const told = this.kinds.get(kind) ?? { named: [], more: 0 };
    this.kinds.set(kind, told);
    const named = items.slice(0, NAMED - told.named.length);
    told.named.push(...named.map((item) => cut(tell(item))));
    told.more += items.length - named.length;
  }

  list(): readonly string[] {
    const told: string[] = [];
    for (const [kind, about] of Object.entries(KINDS)) {
      const { named = [], more = 0 } = this.kinds.get(kind as WarningKind) ?? {};
      told.push(...named);
      if (more > 0) told.push(`… and ${more} more ${about}`);
    }
    return told;
  }
}

function cut(warning: string): string {
  // Not between the halves of one character.
  return warning.length <= MAX_LENGTH
    ? warning
    : `${warning.slice(0, MAX_LENGTH).replace(/[\ud800-\udbff]$/, '')}…`;
}
