/**
 * The crates a handler depends on: a subset of a Cargo manifest, without anything from outside the registry (`path`,
 * `git`, other registries).
 */
/** How one crate is depended on. */
export interface Dependency {
  /** A Cargo version requirement. */
  readonly version: string;
  readonly features?: readonly string[];
  readonly optional?: boolean;
  readonly 'default-features'?: boolean;
}

/** Crates by name, each with a version requirement, or with that and more. */
export type Dependencies = Readonly<Record<string, string | Dependency>>;

/** JSON Schema of `Dependencies`. The keywords about strings apply to strings only, those about objects to objects. */
export const DEPENDENCIES_SCHEMA = {
  type: 'object',
  description: 'Crates by name: a version requirement, or an object with `version` and more',
  propertyNames: { type: 'string', format: 'crate-name' },
  maxProperties: 200,
  additionalProperties: {
    type: ['string', 'object'],
    format: 'version-requirement',
    // Checked before `required`: for a `path` or `git`, "version is required" would be misleading.
    allOf: [
      {
        properties: {
          version: { type: 'string', format: 'version-requirement' },
          features: { type: 'array', maxItems: 200, items: { type: 'string', format: 'feature' } },
          optional: { type: 'boolean' },
          'default-features': { type: 'boolean' },
        },
        additionalProperties: false,
      },
    ],
    required: ['version'],
  },
};
