/**
 * Every environment variable the product reads: default, description and validation. `npm run docs` writes the tables
 * of docs/CONFIGURATION.md from here; `config.ts` reads the environment.
 */
import { COMPILING, HANDLERS, SERVICES } from './settings/handlers.js';
import { HTTP, TRACES } from './settings/http.js';
import { APPLIES, IMPORTS } from './settings/imports.js';
import { ACCESS, ARTIFACT_STORE, CONNECTIONS, PERIODIC_WORK, SIGN_IN } from './settings/installation.js';
import type { Setting } from './settings/setting.js';

export { SANDBOX_MODES } from './settings/installation.js';
export type { Setting };

/** Groups of settings, by the headings of the documentation. */
export const SETTING_GROUPS = {
  'Connections and files': CONNECTIONS,
  'Artifact store': ARTIFACT_STORE,
  'Access and confinement': ACCESS,
  'Sign-in with OpenID Connect': SIGN_IN,
  Compiling: COMPILING,
  Handlers: HANDLERS,
  Services: SERVICES,
  Imports: IMPORTS,
  Applies: APPLIES,
  HTTP,
  Traces: TRACES,
  'Periodic work': PERIODIC_WORK,
} as const satisfies Record<string, Record<string, Setting<unknown>>>;

type Groups = typeof SETTING_GROUPS;
type Union<T> = (T extends unknown ? (value: T) => void : never) extends (value: infer U) => void ? U : never;

/** All settings by name. */
export const SETTINGS = Object.assign({}, ...Object.values(SETTING_GROUPS)) as Union<Groups[keyof Groups]>;
