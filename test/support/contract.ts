/** Checks responses against `/api/openapi.json`, so that every test of the API also tests its description. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { ROUTES } from '../../src/api/app.js';
import { describeApi } from '../../src/api/route/openapi.js';
import type { HttpResponse } from './client.js';

interface Operation {
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
}

const document = describeApi(ROUTES);
const paths = document['paths'] as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
// Formats are validated in requests; only shapes are checked here.
const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true }).addSchema(
  document,
  'api',
);
const validators = new Map<string, ValidateFunction>();

/** @throws Error when the route exists and its description does not allow the answer */
export function assertDescribed(method: string, url: string, response: HttpResponse): void {
  const pathname = new URL(url, 'http://localhost').pathname;
  const path = ROUTES.filter((route) => route.method === method)
    .map((route) => route.path.replace('...}', '}'))
    .sort((left, right) => parametersIn(left) - parametersIn(right))
    .find((candidate) => matcher(candidate).test(pathname));
  if (path === undefined) return;
  const place = `${method} ${path} ${response.status}`;
  const described = paths[path]?.[method.toLowerCase()]?.responses[response.status];
  if (!described) throw new Error(`${place} is not described`);
  const { content } = described;
  if (!content && response.body !== undefined) {
    throw new Error(`${place} is described without a body`);
  }
  if (!content || !('application/json' in content)) return;
  const [mediaType = ''] = response.headers['content-type']?.split(';') ?? [];
  if (mediaType !== 'application/json') {
    if (!(mediaType in content)) throw new Error(`${place} is not described as ${mediaType}`);
    return;
  }
  const pointer = [
    path,
    method.toLowerCase(),
    'responses',
    response.status,
    'content',
    'application/json',
    'schema',
  ];
  let validate = validators.get(place);
  if (!validate) {
    validate = ajv.compile({
      $ref: `api#/paths/${pointer.map((part) => escapePointer(String(part))).join('/')}`,
    });
    validators.set(place, validate);
  }
  if (!validate(response.body)) {
    throw new Error(`${place} is not as described: ${ajv.errorsText(validate.errors)}`);
  }
}

function matcher(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{key\}/g, '.+').replace(/\{\w+\}/g, '[^/]+')}$`);
}

function parametersIn(path: string): number {
  return path.split('{').length;
}

function escapePointer(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}
