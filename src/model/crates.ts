/**
 * The crates a handler depends on: a subset of a Cargo manifest. What else must be true of them, beside the files of
 * their source, is in `crate-sources.ts`.
 */
/** How one crate is depended on. */
export interface Dependency {
  /** A Cargo version requirement, which only a crate of a registry needs. */
  readonly version?: string;
  readonly features?: readonly string[];
  readonly optional?: boolean;
  readonly 'default-features'?: boolean;
  /** Its own name, where the code uses another one. */
  readonly package?: string;
  /** The URL of the git repository that it is from, and a revision. */
  readonly git?: string;
  readonly rev?: string;
  /** The index of the registry that it is from, where that is not crates.io. */
  readonly registry?: string;
  /** The folder of the source that it is in. */
  readonly path?: string;
}

/** Crates by name, each with a version requirement, or with that and more. */
export type Dependencies = Readonly<Record<string, string | Dependency>>;

/** Whether a source has crates of its own; without, there is the SDK with its crates, which are what they are. */
export function hasCrates({ dependencies }: { readonly dependencies: Dependencies }): boolean {
  return Object.keys(dependencies).length > 0;
}

/** JSON Schema of `Dependencies`. The keywords about strings apply to strings only, those about objects to objects. */
export const DEPENDENCIES_SCHEMA = {
  type: 'object',
  description:
    'Crates by name: a version requirement, or an object as in a Cargo.toml, with `version`, `git` and `rev`, or `path`',
  propertyNames: { type: 'string', format: 'crate-name' },
  maxProperties: 200,
  additionalProperties: {
    type: ['string', 'object'],
    format: 'version-requirement',
    // In this order: what is not known is told before what is missing.
    allOf: [
      {
        properties: {
          version: { type: 'string', format: 'version-requirement' },
          features: { type: 'array', maxItems: 200, items: { type: 'string', format: 'feature' } },
          optional: { type: 'boolean' },
          'default-features': { type: 'boolean' },
          package: {
            type: 'string',
            format: 'crate-name',
            description: 'Its own name, where the code uses another one',
          },
          git: { type: 'string', format: 'git-url', description: 'The git repository that it is from' },
          rev: { type: 'string', format: 'git-revision', description: 'With `git`: the whole revision' },
          registry: {
            type: 'string',
            format: 'registry-index',
            description: 'The index of the registry that it is from; crates.io unless given',
          },
          path: {
            type: 'string',
            format: 'crate-folder',
            description:
              'The folder of the source that has its Cargo.toml; "." for the `src/lib.rs` of the source itself',
          },
        },
        additionalProperties: false,
      },
      { if: { anyOf: [{ required: ['git'] }, { required: ['path'] }] }, else: { required: ['version'] } },
    ],
  },
};
