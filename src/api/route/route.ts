/**
 * A route of the management API, defined once: the same schemas validate its requests and describe it in
 * `/api/openapi.json`.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { type Static, type TObject, type TSchema, Type } from '@sinclair/typebox';
import { AppError, type ErrorCode } from '../../errors.js';
import type { Client } from '../../http/trusted-proxies.js';
import type { Origin } from '../../model/actor.js';
import type { RoutePermission, Scope } from '../../model/permission.js';
import { type Check, describeProblem } from '../../model/problems.js';
import { checkOf, coercingCheckOf } from '../../model/schema-check.js';
import { jsonSize } from '../../util/json-text.js';
import type { Logger } from '../../util/log.js';
import { partsOfJson } from '../../util/pauses.js';
import { audited } from '../access/audited.js';
import { actorOf, isSamePrincipal, nobody, ownerOf, type Principal } from '../access/principal.js';
import { kindsInPath, requireInMembers, requireInPath, seesAll } from '../access/references.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { formReader } from '../request/form.js';
import { lowerIds } from '../request/ids.js';
import { hasBody, readBody, requireJsonType } from '../request/json-body.js';
import { ignoredIn, warnOfUnknown } from '../request/unknown-members.js';
import type { AnswerTurns } from '../response/answer-turns.js';
import { type Envelope, wrapSuccess } from '../response/envelope.js';
import { Reply, TextReply } from '../response/reply.js';
import type { ApiContext } from './context.js';

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** A request whose parts have passed their schemas. */
export interface ApiRequest<Params, Query, Body, Form, Content> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** The result of reading the streamed member of the body; see `StreamedBody`. */
  readonly content: Content;
  /** Fields, and files on disk. */
  readonly form: Form;
  /** The request id. */
  readonly id: string;
  /** Request id and who sent it, to be stored with what the request changes. */
  readonly origin: Origin;
  /** Who sends it, and what they may do. */
  readonly principal: Principal;
  /** Where it comes from. */
  readonly client: Client;
  /** The hosts that they may see; undefined: everything. */
  readonly scope: Scope;
  /** Finds out who sends it, at a route for everybody. */
  identify(): Promise<Principal | undefined>;
  /** Whether the same person may still send this request and sees the same; for answers that go on for long. */
  isStillAllowed(): Promise<boolean>;
  /** Adds to the audit entry of the request what else it changes; nothing secret. */
  addAuditDetails(facts: Readonly<Record<string, unknown>>): void;
  /** Keeps the request out of the audit: it changes nothing, though its route can. */
  markAsDryRun(): void;
  readonly log: Logger;
  /** Which of these media types the client prefers. */
  prefers<T extends string>(...mediaTypes: readonly T[]): T | undefined;
  /** A header, or undefined when it was not sent. */
  header(name: string): string | undefined;
  /** The request as it came, for handlers that read a body other than JSON. */
  readonly raw: IncomingMessage;
}

/**
 * Uses a streamed body, which is released afterwards: its fields, not yet validated, and the content of the streamed
 * member.
 */
export type UseOf<Content> = (fields: Record<string, unknown>, content: Content) => Promise<void>;

/** A JSON body with one member that may be too large for memory: the route reads it itself. */
export interface StreamedBody<Content> {
  /** The name of the member. */
  readonly member: string;
  /** The schema for the description of the API; `read` validates the member. */
  readonly schema: TSchema;
  /** Media types of bodies that `read` takes besides JSON. */
  readonly others?: readonly string[];
  /** Reads the whole body, calls `use`, and releases the content. */
  read(context: ApiContext, deps: ApiDependencies, use: UseOf<Content>): Promise<void>;
}

/** A response besides the default one. */
export interface Alternative {
  readonly description: string;
  /** Undefined for a response without a body. */
  readonly data?: TSchema;
  /** Media type when it is not JSON. */
  readonly produces?: string;
}

/** The part of a definition that does not depend on the types of the input. */
interface Description {
  readonly method: Method;
  /** The path with parameters as `{id}`; `{key...}` matches the rest of the path, including slashes. */
  readonly path: string;
  /** What a caller needs for it. */
  readonly permission: RoutePermission;
  /** True when a user whose id is in the path needs no permission. */
  readonly isOpenToOwner?: boolean;
  /** True when nobody has it who is limited to certain domains. */
  readonly isOfInstallation?: boolean;
  /** True for a GET to which another site sends a browser back, and which changes something. */
  readonly isReturn?: boolean;
  readonly summary: string;
  readonly tag: string;
  /** Status of the default response; 200 unless given. */
  readonly status?: 200 | 201 | 303;
  /** The envelope of responses; `ok` unless given. */
  readonly envelope?: Envelope;
  /** True when a request without a body is one with an empty object. */
  readonly isBodyOptional?: boolean;
  /** Error codes of this route, besides those that all such routes have. */
  readonly errors?: readonly ErrorCode[];
  /** Responses besides the default one, by status. */
  readonly alternatives?: Readonly<Record<number, Alternative>>;
  /** Parts of a multipart body; see `form.ts`. */
  readonly form?: TObject;
  /** The setting that limits its files, bytes; UPLOAD_LIMIT_BYTES unless given. */
  readonly formLimit?: 'UPLOAD_LIMIT_BYTES' | 'BUNDLE_LIMIT_BYTES';
  /** True when a client that prefers this to JSON gets a ZIP. */
  readonly zip?: boolean;
  /** Media types of the body besides JSON, as bytes. */
  readonly otherBodies?: readonly string[];
  /** Maximum number of files; by default that of the file parts in the schema. */
  readonly formFiles?: number;
  /** Whose room its files take on the disk, until the request has been handled. */
  readonly formRoom?: 'imports' | 'uploads';
  /** Media type of the default response when it is not JSON. */
  readonly produces?: string;
  /** A member of the body or of the response that can also be sent alone, as text of this type. */
  readonly text?: { readonly member: string; readonly mediaType: string };
  /** Error codes for problems of certain members of the body. */
  readonly bodyErrors?: Readonly<Record<string, ErrorCode>>;
}

/** Looks whether the answer to a request will be large. */
type TurnsOf<Params, Query> = (
  request: Pick<
    ApiRequest<Params, Query, object, object, undefined>,
    'params' | 'query' | 'scope' | 'principal' | 'raw'
  >,
  deps: ApiDependencies,
) => Promise<AnswerTurns | undefined>;

/** The definition of a route. */
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
  /** The schema of `data` in the default response. */
  readonly data: Data;
  /** The turns that its answers take until they are sent, where they are large; for requests without a body. */
  readonly turns?: AnswerTurns | TurnsOf<Static<Params>, Static<Query>>;
  handle(
    request: ApiRequest<Static<Params>, Static<Query>, Static<Body>, Static<Form>, Content>,
    deps: ApiDependencies,
  ): Promise<Static<Data> | Reply | TextReply>;
}

/** A route, as served and described. */
export interface Route extends Description {
  readonly params: TObject;
  readonly query: TObject;
  readonly body: TObject | undefined;
  readonly data: TSchema;
  /** Validates the request, runs the handler and writes the response. */
  serve(context: ApiContext, pathParameters: Record<string, string>, deps: ApiDependencies): Promise<void>;
}

const UNUSED_BODY = 'body: is not used by this request and was ignored';

const NOTHING = Type.Object({});
type Nothing = typeof NOTHING;

/** Defines a route and compiles its schemas. */
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
  const wholeBody = body && streamedBody ? withMember(body, streamedBody) : body;
  const known = Object.keys(wholeBody?.properties ?? {});
  const shown = Object.keys((definition.data as { properties?: object }).properties ?? {});
  const kinds = kindsInPath(definition.path);
  const isChange = definition.method !== 'GET' || definition.isReturn === true;
  const formLimit = definition.formLimit ?? 'UPLOAD_LIMIT_BYTES';
  const formRoom = ({ importReader, uploadRoom }: ApiDependencies) =>
    definition.formRoom === 'imports' ? importReader.room : uploadRoom;

  return {
    ...definition,
    params,
    query,
    body: wholeBody,
    ...(streamedBody?.others && { otherBodies: streamedBody.others }),
    async serve(context, pathParameters, deps) {
      requireValid('path', pathParameters, checkParams);
      const principal = context.state.principal ?? nobody(context.state.client.address);
      const { scope } = principal;
      const auditDetails: Record<string, unknown> = {};
      const queryInput: Record<string, unknown> = { ...context.query };
      const parts = { params: pathParameters, query: queryInput, details: auditDetails };
      if (isChange) context.state.audited = await audited(deps.store, definition.path, parts);
      await requireInPath(deps.store, kinds, pathParameters, isChange, scope);
      const seesNamed = () => seesAll(deps.store, kinds, pathParameters, queryInput, scope);
      requireValid('query', queryInput, checkQuery);
      lowerIds(query, queryInput);
      await requireInMembers(deps.store, queryInput, scope);
      const warnings = dropUnknown(queryInput, query).map(ignoredIn('query'));
      let isSentInTurn = false;
      const answer = async (bodyInput: Record<string, unknown>, content?: Content) => {
        if (body && checkBody) {
          // Checked first: a misspelt member explains why another is missing.
          warnings.push(...warnOfUnknown('body', dropUnknown(bodyInput, body), known, shown));
          requireValid('body', bodyInput, checkBody, definition.bodyErrors);
          lowerIds(body, bodyInput);
        }
        await requireInMembers(deps.store, bodyInput, scope);
        const form = await readForm?.(context, {
          dataDir: deps.config.DATA_DIR,
          limit: { bytes: deps.config[formLimit], setting: formLimit },
          ...(definition.formFiles !== undefined && { maxFiles: definition.formFiles }),
          begin: () => formRoom(deps).begin(ownerOf(context)),
        });
        warnings.push(...(form?.warnings ?? []));
        const result = await definition
          .handle(
            {
              // The checks above guarantee these types.
              params: pathParameters as Static<Params>,
              query: queryInput as Static<Query>,
              body: bodyInput as Static<Body>,
              form: (form?.parts ?? {}) as Static<Form>,
              content: content as Content,
              id: context.state.requestId,
              origin: { requestId: context.state.requestId, actor: actorOf(context) },
              principal,
              client: context.state.client,
              scope,
              identify: async () => context.state.identify?.(),
              isStillAllowed: async () => {
                const now = await context.state.identify?.({ isUse: false });
                return now !== undefined && isSamePrincipal(now, principal) && (await seesNamed());
              },
              addAuditDetails: (facts) => void Object.assign(auditDetails, facts),
              markAsDryRun: () => {
                delete context.state.audited;
                context.state.isTrial = true;
              },
              log: context.state.log,
              prefers: (...types) => {
                const best = context.accepts([...types]);
                return types.find((type) => type === best);
              },
              header: (name) => context.get(name) || undefined,
              raw: context.req,
            },
            deps,
          )
          .finally(() => form?.remove());
        if (result instanceof TextReply) {
          context.set(result.headers);
          context.body = result.text;
          context.type = result.mediaType;
          return;
        }
        const reply = result instanceof Reply ? result : new Reply(status, result);
        context.status = reply.status;
        context.set(reply.headers);
        if (reply.data instanceof Readable) {
          context.body = reply.data;
          return;
        }
        const wrapped = wrapSuccess(envelope, reply.data, [...warnings, ...reply.warnings]);
        if (!isSentInTurn && jsonSize(reply.data, LONG) <= LONG) {
          context.body = wrapped;
          return;
        }
        context.state.answeredId = idOf(reply.data);
        const parts = await partsOfJson(wrapped);
        context.body = Readable.from(parts, { objectMode: false });
        context.length = parts.reduce((length, part) => length + part.length, 0);
        context.type = 'json';
      };
      if (streamedBody) {
        const { others = [] } = streamedBody;
        if (others.length === 0 || !context.request.is([...others])) requireJsonType(context, others);
        await streamedBody.read(context, deps, answer);
      } else {
        const limit = deps.config.API_BODY_LIMIT_BYTES;
        const isLeftOut = definition.isBodyOptional && !hasBody(context);
        const isUnused = isChange && !body && !definition.form && !definition.otherBodies;
        if (isUnused && hasBody(context)) warnings.push(UNUSED_BODY);
        const content = body && !isLeftOut ? await readBody(context, limit, definition.text) : {};
        const asked = {
          ...{ params: pathParameters as Static<Params>, query: queryInput as Static<Query> },
          ...{ raw: context.req, scope, principal },
        };
        const { turns: given } = definition;
        const turns = typeof given === 'function' ? await given(asked, deps) : given;
        if (!turns) return answer(content);
        isSentInTurn = true;
        await turns.run(
          ownerOf(context),
          () => answer(content),
          () => context.body as Readable,
        );
      }
    },
  };
}

/** The id of what an answer shows, which the audit needs. */
function idOf(data: unknown): string | undefined {
  const id = (data as { id?: unknown } | null)?.id;
  return typeof id === 'string' ? id : undefined;
}

/** Characters of JSON; what is longer is written in parts. */
const LONG = 64 * 1024;

function requireValid(
  root: string,
  value: Record<string, unknown>,
  check: Check,
  codes: Readonly<Record<string, ErrorCode>> = {},
): void {
  const problem = check(value);
  if (!problem) return;
  const [member = ''] = problem.path;
  // A missing member has the general error code.
  const code = Object.hasOwn(value, member) ? codes[member] : undefined;
  throw new AppError(code ?? 'invalid_input', describeProblem(root, problem));
}

/**
 * Removes members that the schema does not have, unless it describes members of any name.
 * @returns their names
 */
function dropUnknown(value: Record<string, unknown>, schema: TObject): string[] {
  if (typeof schema.additionalProperties === 'object') return [];
  const unknown = Object.keys(value).filter((key) => !Object.hasOwn(schema.properties, key));
  for (const key of unknown) delete value[key];
  return unknown;
}

/** The schema of the whole body, for the description of the route. */
function withMember(body: TObject, { member, schema }: StreamedBody<unknown>): TObject {
  return Type.Object({ [member]: schema, ...body.properties });
}
