/**
 * The crates a handler depends on: the same words as in a Cargo manifest, less everything that would reach beyond the
 * registry (paths, git, other registries).
 */
import { AppError } from './errors.js';
import { checkOf, describeProblem } from './validation/check.js';

/** How one crate is depended on. */
export interface Dependency {
  /** A Cargo version requirement. */
  readonly version: string;
  readonly features?: readonly string[];
  readonly optional?: boolean;
  readonly 'default-features'?: boolean;
}

/** By crate name: a version requirement, or that and more. */
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
    // Looked at before `required`: "version is required" would be no answer to a `path` or `git`.
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

const check = checkOf(DEPENDENCIES_SCHEMA);

/**
 * Checks what came from outside.
 * @param root where the value stands, for the message
 * @throws AppError invalid_dependency naming the crate and the key
 */
export function parseDependencies(value: unknown, root = 'dependencies'): Dependencies {
  const problem = check(value);
  if (problem) throw new AppError('invalid_dependency', describeProblem(root, problem));
  return value as Dependencies;
}
