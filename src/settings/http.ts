/** How requests are taken, and which traces are sent. */
import { availableParallelism } from 'node:os';
import { integer, networks, oneOf, pairs, ratio, textWithDefault, webAddress } from './setting.js';

const SAMPLERS = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const;

export const HTTP = {
  API_BODY_LIMIT_BYTES: integer(
    4 * 1024 * 1024,
    1024,
    67_108_864,
    'Largest JSON body the management API accepts, bytes.',
    '4 MiB',
  ),
  GATEWAY_BODY_LIMIT_BYTES: integer(
    10 * 1024 * 1024,
    0,
    67_108_864,
    'Largest request body the gateway passes to a handler, bytes; not to one that takes it as a stream, for which the policy `body_limit` counts.',
    '10 MiB',
  ),
  // So much for each core that the largest answer can arrive and be sent.
  GATEWAY_MEMORY_MB: integer(
    256 * availableParallelism(),
    16,
    1_048_576,
    'Memory of the gateway as a whole for request bodies and unsent answers, MiB; at least twice GATEWAY_BODY_LIMIT_BYTES. More requests get 503.',
    '256 for each core',
  ),
  POLICY_MEMORY_MB: integer(
    64,
    8,
    1_048_576,
    'Memory of a gateway for what policies need once they are ready: compiled schemas and patterns, and tokens that were verified, MiB; beyond it, what the domain with most has not used is made again when a request needs it.',
  ),
  POLICIES_OF_DOMAIN_MB: integer(
    256,
    1,
    1_048_576,
    'Policies that one host may have, those of its domain, collections and endpoints together, as JSON, MiB: more are refused, and endpoints that have more answer 503.',
  ),
  API_CONNECTIONS_LIMIT: integer(
    16_384,
    1,
    1_000_000,
    'Client connections of one process of the management API, at most 80 % of its file descriptors. More are refused.',
  ),
  GATEWAY_CONNECTIONS_LIMIT: integer(
    16_384,
    1,
    1_000_000,
    'Client connections of the gateway as a whole, at most 80 % of the file descriptors of its front. More are refused.',
  ),
  GATEWAY_CONCURRENCY: integer(
    availableParallelism(),
    1,
    256,
    'Threads of the front, the process of a gateway that serves its port.',
    'cores',
  ),
  TRUSTED_PROXIES: networks(
    'Comma-separated addresses and networks (`10.0.0.0/8`) of proxies in front of the gateway and the management API. For a request from one of them, the address of the client is the last one in `X-Forwarded-For`, or in `Forwarded` where that is missing, that is not one of them.',
  ),
  HTTP_HEAD_TIMEOUT_MS: integer(
    20_000,
    100,
    3_600_000,
    'Time limit for the head of a request on both servers, milliseconds.',
  ),
  HTTP_IDLE_TIMEOUT_MS: integer(
    75_000,
    100,
    3_600_000,
    'How long an idle connection stays open, milliseconds. Must be longer than the idle timeout of a load balancer in front.',
  ),
  HTTP_STALL_TIMEOUT_MS: integer(
    20_000,
    100,
    3_600_000,
    'How long a client may send a body, or receive an answer, below HTTP_MIN_BYTES_PER_SECOND before its connection is closed, milliseconds.',
  ),
  HTTP_MIN_BYTES_PER_SECOND: integer(
    1_024,
    1,
    1_073_741_824,
    'The slowest rate of a body or an answer, bytes a second on average over HTTP_STALL_TIMEOUT_MS.',
  ),
} as const;

export const TRACES = {
  OTEL_EXPORTER_OTLP_ENDPOINT: webAddress(
    'Where gateways send traces by OTLP over HTTP, in JSON, such as `http://localhost:4318`: `/v1/traces` below it. None are sent unless it is set.',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: pairs(
    'Comma-separated headers that are sent with them, such as `authorization=Bearer%20key`.',
  ),
  OTEL_SERVICE_NAME: textWithDefault('edge-gateway', 'The name of the gateways in traces.'),
  OTEL_TRACES_SAMPLER: oneOf(
    SAMPLERS,
    'parentbased_always_on',
    'Which traces are sent: with `parentbased_` those that clients have sampled, and of requests without a trace those that the rest of the name says.',
  ),
  OTEL_TRACES_SAMPLER_ARG: ratio('For `traceidratio`: the part of the traces that is sent, from 0 to 1.'),
} as const;
