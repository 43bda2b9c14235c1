/** A folder of files that describe an installation, as it was read. */
import type { HandlerPackage } from '../../model/cargo-package.js';
import type { FileRef, FileRefs } from '../../model/source-files.js';

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

/** The source of a handler, as an endpoint of the document names it. */
export interface FolderSource {
  readonly code: string;
  /** The path of the code. */
  readonly entry: string;
  /** The files beside the code: those that it names, and that the endpoint includes; null: none. */
  readonly files: FileRefs | null;
  /** The lock that the endpoint names, or else its package has; null: none. */
  readonly lock: FileRef | null;
  /** What its Cargo.toml says, where the endpoint does not say it; null: nothing. */
  readonly cargo: Pick<HandlerPackage, 'dependencies' | 'edition'> | null;
  /** What is wrong with that, each with its place. */
  readonly cargoProblems: readonly string[];
  /** What is wrong with the files, each with its place. */
  readonly problems: readonly string[];
}

export interface Folder extends FolderDocument {
  /** Sources by what names them (`sourceName`): those whose code is there. */
  readonly sources: ReadonlyMap<string, FolderSource>;
  /** Contents of the files of sources, by their digests. */
  readonly contents: ReadonlyMap<string, Uint8Array>;
}

/** What an endpoint says of its source. */
export interface NamedSource {
  /** The path of its code in the folder. */
  readonly handler: string;
  /** The folder that paths of the source are relative to, and that it does not leave; empty: the whole folder. */
  readonly root: string;
  /** Patterns of further files. */
  readonly include: readonly string[];
  /** The path of its Cargo.lock in the folder; null: that of its package, or none. */
  readonly lock: string | null;
  /** Whether its crates are those of its Cargo.toml, because the endpoint names none. */
  readonly isOfPackage: boolean;
}

export function sourceName({ handler, root, include, lock, isOfPackage }: NamedSource): string {
  return JSON.stringify([handler, root, include, lock, isOfPackage]);
}
