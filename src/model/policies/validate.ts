/**
 * The policy `validate`: what parameters and bodies of requests must be. It has the shape of OpenAPI, so that parts of
 * a document can be put in as they are.
 */

import type { CompiledValidate, Index, MediaType, ParameterStyle } from '../../contracts/front-validate.js';
import { isObject } from '../../util/json-object.js';
import { SchemaCompiler } from '../json-schema/compile-schemas.js';
import { SchemaProblem } from '../json-schema/schema-problem.js';
import { requireModest } from '../json-schema/size.js';
import { TextShapes } from '../json-schema/text-shape.js';

/** `off`: nothing is checked; `report`: problems are counted and logged; `enforce`: such requests are refused. */
export type ValidateMode = 'off' | 'report' | 'enforce';
export const VALIDATE_MODES: readonly ValidateMode[] = ['off', 'report', 'enforce'];

/** Where parameters are, and the styles that they can have there; the first is the default. */
export const PARAMETER_STYLES = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
  cookie: ['form'],
} as const;
export type ParameterPlace = keyof typeof PARAMETER_STYLES;
export const STYLES = [...new Set(Object.values(PARAMETER_STYLES).flat())];

export interface ValidatedParameter {
  readonly in: ParameterPlace;
  readonly name: string;
  readonly required?: boolean;
  readonly style?: string;
  readonly explode?: boolean;
  /** An empty text counts as none. */
  readonly allowEmptyValue?: boolean;
  readonly schema?: unknown;
  /** Instead of `schema`: the value is a JSON text. */
  readonly content?: Readonly<Record<string, { readonly schema?: unknown }>>;
}

export interface ValidatedBody {
  readonly required?: boolean;
  /** Schemas by media type; bodies of a type without a schema are let through as they are. */
  readonly content: Readonly<Record<string, { readonly schema?: unknown }>>;
}

export interface ValidatePolicy {
  readonly mode: ValidateMode;
  readonly parameters?: readonly ValidatedParameter[];
  readonly body?: ValidatedBody;
  /** What `#/components/schemas/NAME` leads to. */
  readonly components?: { readonly schemas?: Readonly<Record<string, unknown>> };
}

const JSON_TYPE = /^application\/(?:[^;\s/]+\+)?json$/;
const FORM_TYPE = 'application/x-www-form-urlencoded';
const MEDIA_TYPE = /^(?:\*\/\*|[!#$%&'*+.^_`|~0-9a-z-]+\/(?:\*|[!#$%&'+.^_`|~0-9a-z-]+))$/;
/** Headers that say how the body is to be read, and who sends it: other policies are about them. */
export const OTHER_HEADERS: readonly string[] = [
  'accept',
  'authorization',
  'content-type',
  'content-length',
  'host',
];

/**
 * What the front enforces; undefined when it is off.
 * @param maxVisits schemas that may be looked at to read texts
 * @throws SchemaProblem with the place within the policy
 */
export function compileValidate(policy: ValidatePolicy, maxVisits?: number): CompiledValidate | undefined {
  requireModest(policy);
  const { mode, parameters = [], body, components } = policy;
  const compiler = new SchemaCompiler();
  for (const [name, schema] of Object.entries(components?.schemas ?? {}))
    compiler.add(schema, ['components', 'schemas', name], name);
  const read = parameters.map((parameter, at) =>
    compileParameter(compiler, parameter, ['parameters', String(at)]),
  );
  const seen = new Set<string>();
  for (const [at, { in: where, name }] of read.entries()) {
    const key = `${where} ${where === 'header' ? name.toLowerCase() : name}`;
    if (seen.has(key)) throw new SchemaProblem(['parameters', String(at)], 'appears twice');
    seen.add(key);
  }
  const types = Object.entries(body?.content ?? {}).map(([type, media]) =>
    compileMediaType(compiler, type, media),
  );
  const schemas = compiler.finish();
  if (mode === 'off') return undefined;
  const shapes = new TextShapes(schemas, maxVisits);
  return {
    mode,
    parameters: read.map(({ schema, ...parameter }) => ({ ...parameter, shape: shapes.of(schema) })),
    ...(body && {
      body: {
        required: body.required ?? false,
        types: types.map(({ schema, ...type }) => ({
          ...type,
          ...(schema !== undefined && { shape: shapes.of(schema) }),
        })),
      },
    }),
    schemas: shapes.schemas.map(({ value }) => value),
  };
}

function compileParameter(compiler: SchemaCompiler, parameter: ValidatedParameter, place: readonly string[]) {
  const { in: where, name, required = false, content, allowEmptyValue = false } = parameter;
  const styles: readonly ParameterStyle[] = PARAMETER_STYLES[where];
  const style = styles.find((known) => known === (parameter.style ?? styles[0]));
  if (style === undefined)
    throw new SchemaProblem([...place, 'style'], `must be one of ${styles.join(', ')} in ${where}`);
  if (where === 'header' && OTHER_HEADERS.includes(name.toLowerCase()))
    throw new SchemaProblem([...place, 'name'], `${name} is not a parameter`);
  if ((parameter.schema === undefined) === (content === undefined))
    throw new SchemaProblem(place, 'needs either schema or content');
  const [[type, media] = [], ...others] = Object.entries(content ?? {});
  if (content && (type === undefined || others.length > 0 || !JSON_TYPE.test(type.toLowerCase())))
    throw new SchemaProblem([...place, 'content'], 'must have one media type, which is that of JSON');
  const schema =
    type === undefined
      ? compiler.add(parameter.schema, [...place, 'schema'])
      : compiler.add(media?.schema ?? true, [...place, 'content', type, 'schema']);
  return {
    ...{ in: where, name, required: required || where === 'path', style },
    explode: parameter.explode ?? style === 'form',
    allowEmpty: allowEmptyValue,
    isJson: content !== undefined,
    schema,
  };
}

function compileMediaType(
  compiler: SchemaCompiler,
  name: string,
  media: { readonly schema?: unknown },
): Omit<MediaType, 'shape'> & { readonly schema?: Index } {
  const type = (name.split(';', 1)[0] ?? '').trim().toLowerCase();
  const place = ['body', 'content', name];
  if (!MEDIA_TYPE.test(type)) throw new SchemaProblem(place, 'is not a media type, such as application/json');
  if (!isObject(media)) throw new SchemaProblem(place, 'must be an object');
  if (media.schema === undefined) return { type, read: 'nothing' };
  const read = JSON_TYPE.test(type)
    ? 'json'
    : type === FORM_TYPE
      ? 'form'
      : type.startsWith('text/')
        ? 'text'
        : undefined;
  if (read === undefined)
    throw new SchemaProblem(
      [...place, 'schema'],
      'can only be checked in bodies of JSON, of forms (application/x-www-form-urlencoded) and of text',
    );
  return { type, read, schema: compiler.add(media.schema, [...place, 'schema']) };
}
