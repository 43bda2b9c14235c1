/** `/api/openapi.json`: the description of the API, generated from the definitions of its routes. */
import { type TSchema, Type } from '@sinclair/typebox';
import { ERROR_CATALOGUE, type ErrorCode } from '../../errors.js';
import { Diagnostic } from '../../model/diagnostic.js';
import { FORMAT_KEYWORDS } from '../../model/formats.js';
import { VERSION } from '../../util/version.js';
import type { Envelope } from '../response/envelope.js';
import { defineRoute, type Route } from './route.js';

type Json = Record<string, unknown>;

/** The pattern of valid part names. */
const PART_NAME = '^[^\\u0000-\\u001f\\u007f"\\\\]+$';

/** The route that serves the description of all routes, itself included. */
export function openApiRoute(routes: () => readonly Route[]): Route {
  const documents = new Map<boolean, Json>();
  return defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    permission: 'authenticated',
    summary: 'Describe this API (OpenAPI 3.1)',
    tag: 'System',
    envelope: 'bare',
    data: Type.Record(Type.String(), Type.Unknown()),
    handle: async ({ principal }) => {
      const needsKey = principal.actor.kind !== 'anonymous';
      const document = documents.get(needsKey) ?? describeApi(routes(), { needsKey });
      documents.set(needsKey, document);
      return document;
    },
  });
}

/**
 * Makes the OpenAPI document. Schemas with a title are listed once, under `components`.
 * @param needsKey whether the API is not open
 */
export function describeApi(routes: readonly Route[], { needsKey = false } = {}): Json {
  const schemas: Json = {};
  const refer = referrerInto(schemas);
  Object.assign(schemas, {
    Failure: {
      type: 'object',
      properties: {
        ok: { const: false },
        error: { type: 'string', description: 'What went wrong, for people' },
        code: { type: 'string', enum: Object.keys(ERROR_CATALOGUE), description: 'The same for programs' },
        details: { description: 'Facts about this occurrence' },
        diagnostics: { type: 'array', items: refer(Diagnostic), description: 'Of the compiler' },
      },
      required: ['ok', 'error', 'code'],
    },
    SuccessFailure: {
      allOf: [
        { $ref: '#/components/schemas/Failure' },
        { type: 'object', properties: { success: { const: false } }, required: ['success'] },
      ],
    },
  });
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    const path = route.path.replace('...}', '}');
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeRoute(route, refer) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Edge Gateway Management API',
      version: VERSION,
      description: 'Domains, collections, endpoints and services of an HTTP edge gateway.',
    },
    security: needsKey ? [{ apiKey: [] }, { session: [] }] : [],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths,
    components: {
      schemas,
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'API_KEY, or a token' },
        session: {
          ...{ type: 'apiKey', in: 'cookie', name: 'egw_session' },
          description: 'Named `__Host-egw_session` for browsers that come by TLS',
        },
      },
    },
  };
}

function describeRoute(route: Route, refer: (schema: unknown) => unknown): Json {
  const referInput = (schema: TSchema) => refer(withKeywords(schema));
  const { params, query, body, form, envelope = 'ok' } = route;
  const parameters = [
    ...Object.entries(params.properties).map(([name, schema]) => ({
      name,
      in: 'path',
      required: true,
      schema: referInput(schema),
    })),
    ...Object.entries(query.properties).map(([name, schema]) => ({
      name,
      in: 'query',
      required: query.required?.includes(name) ?? false,
      schema: referInput(schema),
    })),
  ];
  const text = route.text && { [route.text.mediaType]: { schema: { type: 'string' } } };
  // Any body of this type is text: `{}` too.
  const sentText = route.text && {
    [route.text.mediaType]: { schema: { minLength: 1, ...FORMAT_KEYWORDS['text'] } },
  };
  const content = body
    ? {
        'application/json': { schema: referInput(body) },
        ...sentText,
        ...Object.fromEntries(
          (route.otherBodies ?? []).map((type) => [type, { schema: { type: 'string', format: 'binary' } }]),
        ),
      }
    : form && {
        'multipart/form-data': { schema: referInput({ ...form, propertyNames: { pattern: PART_NAME } }) },
      };
  return {
    operationId: operationId(route),
    ...(route.permission === 'public' && { security: [] }),
    summary: route.summary,
    description: permissionText(route),
    tags: [route.tag],
    ...(parameters.length > 0 && { parameters }),
    ...(content && { requestBody: { required: !route.isBodyOptional, content } }),
    responses: {
      [route.status ?? 200]: {
        description: 'Success',
        content: {
          [route.produces ?? 'application/json']: { schema: wrapSchema(envelope, refer(route.data)) },
          ...(body ? {} : text),
          ...(route.zip && { 'application/zip': { schema: { type: 'string', format: 'binary' } } }),
        },
      },
      ...Object.fromEntries(
        Object.entries(route.alternatives ?? {}).map(([status, { description, data, produces }]) => [
          status,
          {
            description,
            ...(data && {
              content: { [produces ?? 'application/json']: { schema: wrapSchema(envelope, refer(data)) } },
            }),
          },
        ]),
      ),
      ...failures(route, envelope),
    },
  };
}

function permissionText({ permission, isOpenToOwner, isOfInstallation }: Route): string {
  if (permission === 'public') return 'For everybody.';
  const needed =
    permission === 'authenticated' ? 'Needs any credential' : `Needs the permission \`${permission}\``;
  const owner = isOpenToOwner ? ', but for oneself' : '';
  return `${needed}${owner}${isOfInstallation ? ', without limits to domains' : ''}.`;
}

/** All failures of a route by status: its own, and those of the way it reads its input. */
function failures(route: Route, envelope: Envelope): Json {
  const hasParams = Object.keys(route.params.properties).length > 0;
  const hasQuery = Object.keys(route.query.properties).length > 0;
  const codes: ErrorCode[] = [
    ...(hasParams || hasQuery || route.body ? (['invalid_input'] as const) : []),
    // In queries and bodies, too, objects are named that need not exist for who asks.
    ...(hasParams || hasQuery || route.body || route.form ? (['not_found'] as const) : []),
    ...(route.body ? (['invalid_json', 'body_too_large', 'unsupported_media_type'] as const) : []),
    ...Object.values(route.bodyErrors ?? {}),
    ...(route.errors ?? []),
    ...(route.permission === 'public'
      ? []
      : (['unauthorized', 'forbidden', 'too_many_credentials'] as const)),
    'malformed_request',
    'foreign_origin',
    'database_unavailable',
    ...(route.method === 'GET' ? [] : (['audit_unavailable'] as const)),
    'internal_error',
  ];
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of new Set(codes)) {
    const { status } = ERROR_CATALOGUE[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const name = envelope === 'success' ? 'SuccessFailure' : 'Failure';
  return Object.fromEntries(
    [...byStatus].map(([status, listed]) => [
      status,
      {
        description: listed.map((code) => `\`${code}\`: ${ERROR_CATALOGUE[code].meaning}`).join('\n\n'),
        content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
      },
    ]),
  );
}

function wrapSchema(envelope: Envelope, data: unknown): unknown {
  if (envelope === 'bare') return data;
  return {
    type: 'object',
    properties: {
      [envelope]: { const: true },
      data,
      warnings: { type: 'array', items: { type: 'string' }, description: 'Fields that were ignored' },
    },
    required: [envelope, 'data'],
  };
}

/** Adds standard keywords for our own formats, for programs that generate or check requests. */
function withKeywords(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withKeywords);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, member]) => [key, withKeywords(member)]));
  const { format } = copy;
  return typeof format === 'string' ? { ...FORMAT_KEYWORDS[format], ...copy } : copy;
}

/** Replaces schemas that have a title by references, and collects them. */
function referrerInto(schemas: Json): (schema: unknown) => unknown {
  const refer = (schema: unknown): unknown => {
    if (Array.isArray(schema)) return schema.map(refer);
    if (typeof schema !== 'object' || schema === null) return schema;
    const copy = Object.fromEntries(Object.entries(schema).map(([key, member]) => [key, refer(member)]));
    const { title } = copy;
    if (typeof title !== 'string') return copy;
    schemas[title] = copy;
    return { $ref: `#/components/schemas/${title}` };
  };
  return refer;
}

/** `GET /api/domains/{id}/collections` becomes `getDomainsByIdCollections`: stable as long as the path is. */
function operationId({ method, path }: Route): string {
  const words = path
    .split('/')
    .filter((part) => part !== '' && part !== 'api')
    .map((part) => (part.startsWith('{') ? `by_${part.replace(/[{}.]/g, '')}` : part));
  const camel = words
    .join('_')
    .replace(/[^A-Za-z0-9]+([A-Za-z0-9])/g, (_all, letter: string) => letter.toUpperCase());
  return `${method.toLowerCase()}${camel.charAt(0).toUpperCase()}${camel.slice(1)}`;
}
