/** Tries a version: sends it a request, whether it is deployed or not, and shows what it answers and prints. */
import { isUtf8 } from 'node:buffer';
import { type Static, Type } from '@sinclair/typebox';
import { AppError, requireFound } from '../../errors.js';
import type { InvokeResult } from '../../internal/gateway-requests.js';
import type { Origin } from '../../model/actor.js';
import { toHandlerRequest } from '../../model/handler-request.js';
import { ownerOfActor } from '../../model/owner.js';
import { findEndpoint } from '../../store/endpoints.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { HandlerRequestBody } from '../jobs/handler-request.schema.js';
import { defineRoute } from '../route/route.js';
import { IdParams, optional } from '../route/schemas.js';
import { executableOf } from './deploy.js';
import { requireVersion } from './find-version.js';

const Version = Type.Integer({ minimum: 1, maximum: 2_147_483_647 });

const Invoke = Type.Object({
  ...HandlerRequestBody,
  ...optional({ version: { ...Version, description: 'The newest unless given' } }),
});

const Invocation = Type.Object(
  {
    status: Type.Integer(),
    headers: Type.Record(Type.String(), Type.String(), {
      description: 'Names in lower case; values of one name are joined',
    }),
    body: Type.Optional(Type.String({ description: 'The body, when it is UTF-8' })),
    body_base64: Type.Optional(Type.String({ description: 'The body, when it is not' })),
    duration_ms: Type.Number({ description: 'Of the request; the start of the version is not in it' }),
    version: Version,
    request_id: Type.String({ description: 'The handler and the logs have it' }),
    logs: Type.Array(Type.String(), { description: 'The lines that the version printed, from its start on' }),
  },
  { title: 'Invocation' },
);

/** Statuses with which the gateway itself refuses a request before a handler gets it. */
const REFUSED = [400, 404, 405, 413, 417, 431];

export const invokeRoutes = [
  defineRoute({
    method: 'POST',
    path: '/api/endpoints/{id}/invoke',
    permission: 'endpoints:deploy',
    summary: 'Send a request to a version, deployed or not, that is started for it and ended after it',
    tag: 'Versions',
    params: IdParams,
    body: Invoke,
    isBodyOptional: true,
    data: Invocation,
    errors: [
      ...(['endpoint_not_compiled', 'no_gateway', 'gateway_busy', 'handler_start_failed'] as const),
      ...([
        'compile_failed',
        'compile_timeout',
        'crates_timeout',
        'build_cancelled',
        'no_disk_space',
        'queue_unavailable',
        'queue_full',
      ] as const),
      ...(['artifact_store_unavailable', 'no_worker', 'wait_timeout'] as const),
    ],
    handle: ({ params, body, origin }, deps) => invoke(deps, params.id, body, origin),
  }),
];

async function invoke(
  deps: ApiDependencies,
  endpointId: string,
  input: Static<typeof Invoke>,
  origin: Origin,
): Promise<Static<typeof Invocation>> {
  const { store, config, gateways } = deps;
  const endpoint = requireFound(await findEndpoint(store, endpointId), 'endpoint', endpointId);
  const request = toHandlerRequest(endpoint, input, config.GATEWAY_BODY_LIMIT_BYTES);
  const version = input.version ?? endpoint.latest_version;
  if (version === null)
    throw new AppError('endpoint_not_compiled', 'The endpoint has no version; compile it first.');
  const storedVersion = await requireVersion(store, endpointId, version);
  const artifact = await executableOf(deps, storedVersion, origin);
  const { body, ...rest } = request;
  const sent = { ...rest, endpointId, bodyBase64: body.toString('base64'), requestId: origin.requestId };
  const principal = ownerOfActor(origin.actor);
  return present(await gateways.invoke({ ...sent, artifact, principal }), version);
}

function present(invoked: InvokeResult, version: number): Static<typeof Invocation> {
  const { status, headers, bodyBase64, requestId, durationMs, logs, error } = invoked;
  if (error !== undefined && REFUSED.includes(status))
    throw new AppError('invalid_input', `The request was not sent to the handler: ${error}`);
  const joined = new Map<string, string>();
  for (const [name, value] of headers) {
    const before = joined.get(name);
    joined.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const bytes = Buffer.from(bodyBase64, 'base64');
  // Otherwise the body says why the gateway answers.
  const isLeftOut = error !== undefined && bytes.length === 0;
  return {
    status,
    headers: Object.fromEntries(joined),
    ...(isUtf8(bytes) ? { body: bytes.toString() } : { body_base64: bodyBase64 }),
    duration_ms: Math.round(durationMs * 1000) / 1000,
    version,
    request_id: requestId,
    logs: [...logs, ...(isLeftOut ? [`(gateway) ${error}`] : [])],
  };
}
