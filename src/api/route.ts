/**
 * A route of the management API, defined once: the same schemas validate its requests and describe it in
 * `/api/openapi.json`.
 */
import type { IncomingMessage } from 'node:http';
import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox';
import { AppError, type ErrorCode } from '../errors.js';
import type { Logger } from '../log.js';
import { type Check, checkOf, coercingCheckOf, describeProblem } from '../validation/check.js';
import type { ApiContext } from './context.js';
import type { ApiDependencies } from './dependencies.js';
import { type Envelope, wrapSuccess } from './envelope.js';
import { formReader } from './form.js';
import { readJsonBody, requireJsonType } from './json-body.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A request whose parts have passed their schemas. */
export interface ApiRequest<Params, Query, Body, Form, Content> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** What was made of the member of the body that is not held; see `StreamedBody`. */
  readonly content: Content;
  /** Fields, and files on disk. */
  readonly form: Form;
  /** The request id, to be stored with work that outlives the request. */
  readonly id: string;
  readonly log: Logger;
  /** A header, or undefined when it was not sent. */
  header(name: string): string | undefined;
  /** The request as it came, for handlers that read a body other than JSON. */
  readonly raw: IncomingMessage;
}

/** An answer that differs from the one the route is defined with: another status, more headers, warnings, a stream. */
export class Reply {
  constructor(
    readonly status: number,
    readonly data: unknown,
    readonly headers: Readonly<Record<string, string>> = {},
    readonly warnings: readonly string[] = [],
  ) {}
}

/** What is done with a body that is not held longer than this takes: with its fields, still to be checked, and the rest. */
export type UseOf<Content> = (fields: Record<string, unknown>, content: Content) => Promise<void>;

/** A JSON body with one member that may be too large to be held: the route reads it by itself. */
export interface StreamedBody<Content> {
  /** Its name. */
  readonly member: string;
  /** Describes it; `read` is what checks it. */
  readonly schema: TSchema;
  /** Reads the whole body, and has the request answered while what was read is held. */
  read(context: ApiContext, deps: ApiDependencies, use: UseOf<Content>): Promise<void>;
}

/** An answer a route may give beside its usual one. */
export interface Alternative {
  readonly description: string;
  /** Undefined for an answer without a body. */
  readonly data?: TSchema;
  /** Media type when it is not JSON. */
  readonly produces?: string;
}

/** What all routes have in common, whatever the types of their input. */
interface Description {
  readonly method: Method;
  /** With parameters as `{id}`; one as `{key...}` takes the rest of the path, slashes included. */
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  /** Status of the usual answer; 200 unless given. */
  readonly status?: 200 | 201;
  /** How answers are wrapped; `ok` unless given. */
  readonly envelope?: Envelope;
  /** Codes of the failures this route has beyond those any such route has. */
  readonly errors?: readonly ErrorCode[];
  /** Other answers than the usual one, by status. */
  readonly alternatives?: Readonly<Record<number, Alternative>>;
  /** Parts of a multipart body; see `form.ts`. */
  readonly form?: TObject;
  /** The setting that limits its files, bytes; UPLOAD_LIMIT_BYTES unless given. */
  readonly formLimit?: 'UPLOAD_LIMIT_BYTES' | 'BUNDLE_LIMIT_BYTES';
  /** Files it may have; as many as the schema has parts for, unless given. */
  readonly formFiles?: number;
  /** Media type of the usual answer when it is not JSON. */
  readonly produces?: string;
  /** Members of the body whose problems have an error code of their own. */
  readonly bodyErrors?: Readonly<Record<string, ErrorCode>>;
}

/** A route as its module writes it down. */
export interface RouteDefinition<
  Params extends TObject,
  Query extends TObject,
  Body extends TObject,
  Form extends TObject,
  Data extends TSchema,
  Content,
> extends Description {
  readonly params?: Params;
  readonly query?: Query;
  readonly body?: Body;
  readonly streamedBody?: StreamedBody<Content>;
  readonly form?: Form;
  /** What `data` of the usual answer is. */
  readonly data: Data;
  handle(
    request: ApiRequest<Static<Params>, Static<Query>, Static<Body>, Static<Form>, Content>,
    deps: ApiDependencies,
  ): Promise<Static<Data> | Reply>;
}

/** A route as the application serves and describes it. */
export interface Route extends Description {
  readonly params: TObject;
  readonly query: TObject;
  readonly body: TObject | undefined;
  readonly data: TSchema;
  /** Validates the request, runs the handler and writes the answer. */
  serve(context: ApiContext, pathParameters: Record<string, string>, deps: ApiDependencies): Promise<void>;
}

const NOTHING = Type.Object({});
type Nothing = typeof NOTHING;

/** Defines a route. Its schemas are compiled here, once. */
export function defineRoute<
  Data extends TSchema,
  Params extends TObject = Nothing,
  Query extends TObject = Nothing,
  Body extends TObject = Nothing,
  Form extends TObject = Nothing,
  Content = undefined,
>(definition: RouteDefinition<Params, Query, Body, Form, Data, Content>): Route {
  const { params = NOTHING, query = NOTHING, body, streamedBody } = definition;
  const checkParams = coercingCheckOf(params);
  const checkQuery = coercingCheckOf(query);
  const checkBody = body && checkOf(body);
  const readForm = definition.form && formReader(definition.form);
  const status = definition.status ?? 200;
  const envelope = definition.envelope ?? 'ok';
  const formLimit = definition.formLimit ?? 'UPLOAD_LIMIT_BYTES';

  return {
    ...definition,
    params,
    query,
    body: body && (streamedBody ? withMember(body, streamedBody) : body),
    async serve(context, pathParameters, deps) {
      requireValid('path', pathParameters, checkParams);
      const queryInput: Record<string, unknown> = { ...context.query };
      requireValid('query', queryInput, checkQuery);
      const warnings = dropUnknown('query', queryInput, query);
      const answer = async (bodyInput: Record<string, unknown>, content?: Content) => {
        if (body && checkBody) {
          requireValid('body', bodyInput, checkBody, definition.bodyErrors);
          warnings.push(...dropUnknown('body', bodyInput, body));
        }
        const form = await readForm?.(context, {
          dataDir: deps.config.DATA_DIR,
          limit: { bytes: deps.config[formLimit], setting: formLimit },
          ...(definition.formFiles !== undefined && { maxFiles: definition.formFiles }),
        });
        warnings.push(...(form?.unknown ?? []).map((name) => ignored('form', name)));
        const result = await definition
          .handle(
            {
              // The checks above are what makes these types true.
              params: pathParameters as Static<Params>,
              query: queryInput as Static<Query>,
              body: bodyInput as Static<Body>,
              form: (form?.parts ?? {}) as Static<Form>,
              content: content as Content,
              id: context.state.requestId,
              log: context.state.log,
              header: (name) => context.get(name) || undefined,
              raw: context.req,
            },
            deps,
          )
          .finally(() => form?.remove());
        const reply = result instanceof Reply ? result : new Reply(status, result);
        context.status = reply.status;
        context.set(reply.headers);
        context.body = wrapSuccess(envelope, reply.data, [...warnings, ...reply.warnings]);
      };
      if (streamedBody) {
        requireJsonType(context);
        await streamedBody.read(context, deps, answer);
      } else {
        await answer(body ? await readJsonBody(context, deps.config.API_BODY_LIMIT_BYTES) : {});
      }
    },
  };
}

function requireValid(
  root: string,
  value: Record<string, unknown>,
  check: Check,
  codes: Readonly<Record<string, ErrorCode>> = {},
): void {
  const problem = check(value);
  if (!problem) return;
  const [member = ''] = problem.path;
  // A member that is missing is not one with content of its own kind.
  const code = Object.hasOwn(value, member) ? codes[member] : undefined;
  throw new AppError(code ?? 'invalid_input', describeProblem(root, problem));
}

/** Unknown members are ignored, so that a client may know more fields than the service; a typo shows as a warning. */
function dropUnknown(root: string, value: Record<string, unknown>, schema: TObject): string[] {
  const unknown = Object.keys(value).filter((key) => !Object.hasOwn(schema.properties, key));
  for (const key of unknown) delete value[key];
  return unknown.map((key) => ignored(root, key));
}

function ignored(root: string, key: string): string {
  return `${root}.${key}: is not a known field and was ignored`;
}

/** The whole body, for the description of the route. */
function withMember(body: TObject, { member, schema }: StreamedBody<unknown>): TObject {
  return Type.Object({ [member]: schema, ...body.properties });
}
