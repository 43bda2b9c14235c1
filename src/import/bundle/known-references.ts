/** What files of Rust name, looked for once in each: handlers share files. Keeps none of their contents. */
import { fileReferences, type RustFile } from '../../model/rust-references.js';
import type { ArchiveFile } from './archive.js';

export class KnownReferences {
  readonly #known = new Map<string, RustFile>();

  readonly of = (path: string, code: string): RustFile => {
    const known = this.#known.get(path) ?? fileReferences(code);
    this.#known.set(path, known);
    return known;
  };

  async read(file: ArchiveFile): Promise<RustFile> {
    return this.#known.get(file.path) ?? this.of(file.path, (await file.read()).toString());
  }
}
