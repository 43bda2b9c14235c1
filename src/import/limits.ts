/** How large what is imported may be: a bundle with a document, or a folder of files. */
export interface ImportLimits {
  /** Most files and folders. */
  readonly entries: number;
  /** Most bytes that all files together may unpack to. */
  readonly unpackedBytes: number;
  /** Largest document, or YAML file, bytes. */
  readonly specBytes: number;
  /** Most operations of document and manifest together; most objects of one kind in a folder. */
  readonly operations: number;
  /** Largest code of a handler, and as much for its files together, bytes. */
  readonly codeBytes: number;
  /** Most files that a handler has beside its code. */
  readonly sourceFiles: number;
}
