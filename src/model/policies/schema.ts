/** JSON Schema of `Policies`. Unknown members are refused: a misspelt policy would silently not apply. */
import { ENDPOINT_METHODS } from '../endpoint-method.js';
import { JWT_ALGORITHMS } from './key-set.js';
import { HOST_HEADERS } from './policies.js';
import { PARAMETER_STYLES, STYLES, VALIDATE_MODES } from './validate.js';

const object = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
});
const orNull = <T extends { readonly type: string | readonly string[] }>(schema: T) => ({
  ...schema,
  type: [...[schema.type].flat(), 'null'],
});
const listOf = (items: object, maxItems = 100) => ({ type: 'array', items, maxItems });
const integer = (minimum: number, maximum: number, description: string) => ({
  ...{ type: 'integer', minimum, maximum, description },
});

const HEADER_NAME = { type: 'string', format: 'changeable-header' };
const HEADER_VALUE = { type: 'string', format: 'header-value', maxLength: 4096 };
const ANY_HEADER_NAME = { type: 'string', format: 'header-name' };
const CIDR = { type: 'string', format: 'cidr' };
const SECRET_NAME = {
  type: 'string',
  format: 'variable-name',
  description: 'The name of a secret of the endpoint, its collection or its domain',
};

const CORS = object(
  {
    origins: {
      ...listOf({ type: 'string', format: 'cors-origin' }),
      minItems: 1,
      description: 'Origins of pages: exact, `*`, or `https://*.example.com`',
    },
    methods: listOf({ type: 'string', enum: [...ENDPOINT_METHODS, 'HEAD'] }),
    headers: listOf(ANY_HEADER_NAME),
    expose: listOf(ANY_HEADER_NAME),
    credentials: { type: 'boolean' },
    max_age_seconds: integer(0, 86_400, 'How long browsers may remember the answer'),
  },
  { required: ['origins'], description: 'Which pages of other origins may call it' },
);

const IP = object(
  { allow: listOf(CIDR, 1000), deny: listOf(CIDR, 1000) },
  { description: 'Networks whose requests are served, and those whose are refused with 403' },
);

const RATE_LIMIT_MEMBERS = {
  properties: {
    requests: integer(1, 1_000_000_000, 'So many requests'),
    window_seconds: integer(1, 86_400, 'in so many seconds'),
    by: {
      type: 'string',
      format: 'rate-limit-by',
      description: 'of one `address`, `key`, `subject` or `header:<name>`',
    },
    on_failure: {
      type: 'string',
      enum: ['open', 'closed'],
      description:
        'What becomes of requests while Redis, where machines count together, is away; `open` by default',
    },
  },
  required: ['requests', 'window_seconds', 'by'],
  additionalProperties: false,
};
const RATE_LIMIT = {
  type: ['object', 'array'],
  ...RATE_LIMIT_MEMBERS,
  items: { type: 'object', ...RATE_LIMIT_MEMBERS },
  minItems: 1,
  maxItems: 8,
  description: 'How many requests callers may send: one rule, or several',
};

const KEY_SET = object(
  { keys: { ...listOf({ type: 'object' }, 50), minItems: 1 } },
  { required: ['keys'], description: 'JSON Web Key Set, public keys only' },
);
const JWT = object(
  {
    issuer: { type: 'string', minLength: 1, maxLength: 2048 },
    audience: {
      type: ['string', 'array'],
      minLength: 1,
      maxLength: 2048,
      items: { type: 'string', minLength: 1, maxLength: 2048 },
      minItems: 1,
      maxItems: 50,
    },
    jwks: KEY_SET,
    jwks_url: { type: 'string', format: 'web-url', maxLength: 2048 },
    algorithms: { ...listOf({ type: 'string', enum: [...JWT_ALGORITHMS] }), minItems: 1 },
    clock_skew_seconds: integer(0, 600, 'By how much clocks may differ; 30 by default'),
    required_claims: {
      type: 'object',
      additionalProperties: { type: ['string', 'number', 'boolean', 'null'] },
      maxProperties: 50,
      description: 'Claims that a token must have, with the values that it must have; null: any',
    },
    scopes: listOf({ type: 'string', pattern: '^[!#-\\[\\]-~]+$', maxLength: 256 }),
  },
  { required: ['issuer', 'audience'], description: 'JSON Web Tokens in `Authorization: Bearer`' },
);
const AUTH = object(
  {
    api_key: object({ header: HEADER_NAME }, { description: 'Keys of the domain, in `X-Api-Key`' }),
    basic: object(
      {
        users: {
          type: 'object',
          propertyNames: { type: 'string', pattern: '^[^:\\u0000-\\u001f\\u007f]{1,128}$' },
          additionalProperties: SECRET_NAME,
          minProperties: 1,
          maxProperties: 100,
          description: 'Names of users, and the names of the secrets that are their passwords',
        },
        realm: { type: 'string', pattern: '^[ !#-\\[\\]-~]{1,128}$' },
      },
      { required: ['users'] },
    ),
    hmac: object(
      {
        style: { type: 'string', enum: ['github', 'stripe'] },
        secret: SECRET_NAME,
        tolerance_seconds: integer(1, 86_400, 'How old a signature of Stripe may be; 300 by default'),
      },
      { required: ['style', 'secret'], description: 'Signatures of bodies, as GitHub and Stripe send them' },
    ),
    jwt: JWT,
  },
  { minProperties: 1, description: 'How callers show who they are: one of these ways suffices' },
);

const CHANGES = object({
  remove: listOf(HEADER_NAME),
  set: { type: 'object', propertyNames: HEADER_NAME, additionalProperties: HEADER_VALUE, maxProperties: 100 },
  add: { type: 'object', propertyNames: HEADER_NAME, additionalProperties: HEADER_VALUE, maxProperties: 100 },
});
const HEADERS = object({
  request: CHANGES,
  response: object({
    ...CHANGES.properties,
    allow: {
      ...listOf({ type: 'string', enum: HOST_HEADERS }),
      description:
        'What handlers may send although it decides about the whole host: other endpoints, and the API if it is there',
    },
  }),
  security_headers: { type: 'boolean' },
});

const REDIRECT = object(
  {
    to: { type: 'string', format: 'web-url', maxLength: 2048 },
    status: { type: 'integer', enum: [301, 302, 303, 307, 308] },
    keep_path: { type: 'boolean', description: 'Path and query of the request are appended' },
  },
  { required: ['to'] },
);
const MAINTENANCE = object({
  message: { type: 'string', format: 'text', maxLength: 1000 },
  retry_after_seconds: integer(1, 86_400, 'For `Retry-After`'),
});
const COMPRESS = object({
  min_bytes: integer(1, 1_073_741_824, 'Shorter answers are sent as they are; 1024 by default'),
  algorithms: { ...listOf({ type: 'string', enum: ['br', 'gzip', 'zstd'] }), minItems: 1 },
});

/** A JSON Schema; `checks.ts` says what is wrong with one. */
const ANY_SCHEMA = { description: 'JSON Schema 2020-12' };
const MEDIA_TYPES = (maxProperties: number) => ({
  type: 'object',
  additionalProperties: object({ schema: ANY_SCHEMA }),
  minProperties: 1,
  maxProperties,
});
const VALIDATE = object(
  {
    mode: {
      type: 'string',
      enum: [...VALIDATE_MODES],
      description: '`report` counts and logs what is wrong, `enforce` refuses it',
    },
    parameters: listOf(
      object(
        {
          in: { type: 'string', enum: Object.keys(PARAMETER_STYLES) },
          name: { type: 'string', minLength: 1, maxLength: 256 },
          required: { type: 'boolean' },
          style: { type: 'string', enum: STYLES },
          explode: { type: 'boolean' },
          allowEmptyValue: { type: 'boolean' },
          schema: ANY_SCHEMA,
          content: MEDIA_TYPES(1),
        },
        { required: ['in', 'name'] },
      ),
      500,
    ),
    body: object({ required: { type: 'boolean' }, content: MEDIA_TYPES(200) }, { required: ['content'] }),
    components: object(
      { schemas: { type: 'object', additionalProperties: ANY_SCHEMA } },
      { description: 'What `#/components/schemas/NAME` leads to' },
    ),
  },
  {
    required: ['mode'],
    description: 'What parameters and bodies must be, as in OpenAPI',
  },
);

const WEBSOCKET = object(
  {
    allowed_origins: {
      ...listOf({ type: 'string', format: 'cors-origin' }),
      description:
        'Origins of pages besides those of the same host: exact, `*`, or `https://*.example.com`; others get 403',
    },
    max_message_bytes: integer(1, 67_108_864, 'Longest message, bytes; 1 MiB by default'),
    messages_per_second: integer(1, 1_000_000, 'Messages of one client; any number by default'),
  },
  { description: 'From which pages WebSockets are opened, and what may be sent over one' },
);

/** JSON Schema of `Policies`. */
export const POLICIES_SCHEMA = object(
  {
    cors: orNull(CORS),
    ip: orNull(IP),
    rate_limit: orNull(RATE_LIMIT),
    auth: orNull(AUTH),
    headers: orNull(HEADERS),
    redirect: orNull(REDIRECT),
    maintenance: orNull(MAINTENANCE),
    body_limit: orNull(integer(0, 1_099_511_627_776, 'Longest body of a request, bytes; beyond it, 413')),
    timeout: orNull(integer(1, 3_600_000, 'Deadline of one request, milliseconds; beyond it, 504')),
    compress: orNull(COMPRESS),
    validate: orNull(VALIDATE),
    websocket: orNull(WEBSOCKET),
  },
  { description: 'What the gateway does with requests and answers; of each policy the nearest counts' },
);
