/** What projects are made of: examples, of the checkout or of the package of this program. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PACKAGE = fileURLToPath(new URL('..', import.meta.url));
const ABOVE = join(PACKAGE, '..');
/** Whether this is a checkout: there, files are used where they are. */
const isCheckout = existsSync(join(ABOVE, 'rust/sdk/Cargo.toml')) && existsSync(join(ABOVE, 'examples'));
/** The checkout that this program is in; undefined when it was installed as a package. */
export const CHECKOUT = isCheckout ? ABOVE : undefined;

/** The JSON Schema of edge.yaml. */
export const EDGE_SCHEMA = isCheckout
  ? join(ABOVE, 'docs/edge.schema.json')
  : join(PACKAGE, 'edge.schema.json');
const EXAMPLES = isCheckout ? join(ABOVE, 'examples') : join(PACKAGE, 'templates');

/** The endpoint of an example, as `endpoint.json` has it. */
export interface TemplateEndpoint {
  readonly name: string;
  readonly path: string;
  readonly method: string;
  readonly description?: string;
}

export interface Template {
  readonly endpoints: readonly TemplateEndpoint[];
  readonly pools: readonly { readonly pool_id: string; readonly service_type: string }[];
  readonly code: string;
}

/** Names of examples that are one handler. */
export function templateNames(): string[] {
  return readdirSync(EXAMPLES)
    .filter((name) => existsSync(join(EXAMPLES, name, 'endpoint.json')))
    .sort();
}

export function readTemplate(name: string): Template {
  const read = (file: string) => readFileSync(join(EXAMPLES, name, file), 'utf8');
  const {
    endpoint,
    endpoints = [],
    services = [],
  } = JSON.parse(read('endpoint.json')) as {
    endpoint?: TemplateEndpoint;
    endpoints?: TemplateEndpoint[];
    services?: Template['pools'];
  };
  return {
    endpoints: endpoint ? [endpoint, ...endpoints] : endpoints,
    pools: services,
    code: read('handler.rs'),
  };
}
