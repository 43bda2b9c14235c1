/** A folder of files that describe an installation, as it was read. */

/** A value, and where it stands: `edge.yaml:12`. */
export interface ValueAtLine {
  readonly value: unknown;
  readonly place: string;
  /** Where each member of it stands. */
  readonly members: Readonly<Record<string, string>>;
}

/** All YAML files of a folder, merged; not yet validated. */
export interface FolderDocument {
  /** What is no list of objects. */
  readonly head: readonly { readonly name: string; readonly value: unknown; readonly place: string }[];
  /** Objects by the member that lists them. */
  readonly lists: Readonly<Record<string, readonly ValueAtLine[]>>;
}

export interface Folder extends FolderDocument {
  /** Sources of handlers by their paths: those that the document names, and that are there. */
  readonly sources: ReadonlyMap<string, string>;
}
