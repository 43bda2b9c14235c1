/**
 * What the JSON Schema of the policies does not say to people. A member that is not here has a field by its schema, with
 * the description there as its hint.
 */
import type { FieldHints } from '../fields/schema.js';
import type { Domain } from '../generated/routes.js';

export type PolicyName = keyof NonNullable<Domain['policies']>;

interface PolicyHints {
  readonly title: string;
  readonly hint: string;
  /** What the policy is when no field has a value, where that is not an empty object. */
  readonly base?: object;
  /** Edited as JSON; `true`: all of it. */
  readonly asJson?: true | readonly string[];
  /** Hints for the fields, by their paths, in their order. */
  readonly fields?: Readonly<Record<string, FieldHints>>;
}

const A_LINE_EACH = 'A line each';
const ORIGINS_HINT = `${A_LINE_EACH}: https://app.example.com, https://*.example.com, or *`;
const seconds = (label: string): FieldHints => ({ label, unit: 'seconds', hint: 'Seconds' });
const changes = (of: 'request' | 'response'): Readonly<Record<string, FieldHints>> => ({
  [`${of}.set`]: { label: `Set in the ${of}`, hint: `${A_LINE_EACH}: Name: value` },
  [`${of}.add`]: { label: `Add to the ${of}`, hint: 'One more of the name' },
  [`${of}.remove`]: { label: `Remove from the ${of}`, hint: 'A name in each line' },
});

export const POLICY_HINTS: Readonly<Record<PolicyName, PolicyHints>> = {
  cors: {
    title: 'Pages of other origins (CORS)',
    hint: 'Which pages may call it from a browser.',
    fields: {
      origins: { label: 'Origins', hint: ORIGINS_HINT },
      methods: { label: 'Methods', hint: `${A_LINE_EACH}; those of the path unless given` },
      headers: { label: 'Headers that pages may send', hint: `${A_LINE_EACH}; all unless given` },
      expose: { label: 'Headers that pages may read', hint: A_LINE_EACH },
      credentials: { label: 'Pages may send cookies and credentials' },
      max_age_seconds: seconds('Browsers remember the answer for'),
    },
  },
  ip: {
    title: 'Networks',
    hint: 'From where requests are let in. Denied ones count before allowed ones.',
    fields: {
      allow: {
        label: 'Allow',
        hint: 'An address or a network such as 10.0.0.0/8 in each line; all unless given',
      },
      deny: { label: 'Deny', hint: 'An address or a network in each line' },
    },
  },
  rate_limit: {
    title: 'Rate limit',
    hint: 'How many requests a caller may send. Several rules at once are edited as JSON.',
    fields: {
      requests: { label: 'Requests' },
      window_seconds: seconds('Window'),
      by: { label: 'Counted per', hint: 'address, key, subject, or header:NAME' },
      on_failure: {
        label: 'While Redis is away',
        options: {
          '': 'Let requests through, as usual',
          open: 'Let requests through',
          closed: 'Refuse them',
        },
      },
    },
  },
  auth: {
    title: 'Who may call',
    hint: 'By keys of the domain, which its settings make; passwords, signatures and tokens of an issuer are edited as JSON.',
    base: { api_key: {} },
    asJson: ['basic', 'hmac', 'jwt'],
    fields: { 'api_key.header': { label: 'Header of the key', hint: 'X-Api-Key unless given' } },
  },
  headers: {
    title: 'Headers',
    hint: 'What is changed in requests before the handler gets them, and in its answers.',
    fields: {
      ...changes('request'),
      ...changes('response'),
      'response.allow': {
        label: 'Headers for the whole host that handlers may send',

        hint: `${A_LINE_EACH}, such as Clear-Site-Data; none unless given`,
      },
      security_headers: { label: 'Add the usual security headers to answers' },
    },
  },
  redirect: {
    title: 'Redirect',
    hint: 'All requests are sent elsewhere.',
    fields: {
      to: { label: 'To', hint: 'Such as https://new.example.com/' },
      status: { label: 'Status', options: { '': '307, as usual' } },
      keep_path: { label: 'Append path and query of the request' },
    },
  },
  maintenance: {
    title: 'Maintenance',
    hint: 'All requests are answered with 503 and a message.',
    fields: { message: { label: 'Message' }, retry_after_seconds: seconds('Try again after') },
  },
  body_limit: {
    title: 'Longest body',
    hint: 'Longer ones are refused with 413.',
    fields: { '': { label: 'Bytes', unit: 'bytes' } },
  },
  timeout: {
    title: 'Deadline',
    hint: 'A request that takes longer is answered with 504.',
    fields: { '': { label: 'Milliseconds', unit: 'milliseconds' } },
  },
  compress: {
    title: 'Compression',
    hint: 'Answers are compressed for clients that accept it.',
    fields: {
      min_bytes: { label: 'Minimum size', unit: 'bytes', hint: 'Bytes; 1024 unless given' },
      algorithms: { label: 'Algorithms', hint: `${A_LINE_EACH}: br, zstd, gzip` },
    },
  },
  validate: {
    title: 'Checks of requests',
    hint: 'What parameters and bodies have to be, as JSON Schemas.',
    asJson: true,
  },
  websocket: {
    title: 'WebSockets',
    hint: 'From which pages they are opened, and what clients may send.',
    fields: {
      allowed_origins: { label: 'Origins besides the own host', hint: ORIGINS_HINT },
      max_message_bytes: { label: 'Longest message', unit: 'bytes', hint: 'Bytes; 1 MiB unless given' },
      messages_per_second: { label: 'Messages a second', hint: 'Of one client' },
    },
  },
};
