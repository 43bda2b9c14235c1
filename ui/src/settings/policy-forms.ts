/**
 * The policies, and fields for those that a form can show whole. What has more to it, such as tokens of an issuer or
 * JSON Schemas, is edited as JSON: a form that hides a part of a policy would lie.
 */
import { headerLines, headersOf } from '../base/header-lines.js';

export type PolicyName =
  | 'cors'
  | 'ip'
  | 'rate_limit'
  | 'auth'
  | 'headers'
  | 'redirect'
  | 'maintenance'
  | 'body_limit'
  | 'timeout'
  | 'compress'
  | 'validate'
  | 'websocket';

/** What a number counts. */
export type Unit = 'seconds' | 'milliseconds' | 'bytes';

export interface PolicyField {
  /** Where its value is in the policy, such as `request.set`; empty where it is the policy. */
  readonly path: string;
  readonly label: string;
  readonly hint?: string;
  /** `list`: a line each; `headers`: lines such as `Name: value`. */
  readonly kind: 'text' | 'number' | 'check' | 'list' | 'headers' | 'choice';
  /** Of a number. */
  readonly unit?: Unit;
  readonly options?: readonly { readonly value: string; readonly label: string }[];
}

export interface PolicyForm {
  readonly title: string;
  readonly hint: string;
  /** What the policy is when no field has a value. */
  readonly base: unknown;
  /** None: it is edited as JSON. */
  readonly fields: readonly PolicyField[];
}

const seconds = (path: string, label: string): PolicyField => ({
  path,
  label,
  kind: 'number',
  unit: 'seconds',
  hint: 'Seconds',
});
const changes = (of: 'request' | 'response'): readonly PolicyField[] => [
  { path: `${of}.set`, label: `Set in the ${of}`, kind: 'headers', hint: 'A line each: Name: value' },
  { path: `${of}.add`, label: `Add to the ${of}`, kind: 'headers', hint: 'One more of the name' },
  { path: `${of}.remove`, label: `Remove from the ${of}`, kind: 'list', hint: 'A name in each line' },
];

export const POLICY_FORMS: Readonly<Record<PolicyName, PolicyForm>> = {
  cors: {
    title: 'Pages of other origins (CORS)',
    hint: 'Which pages may call it from a browser.',
    base: {},
    fields: [
      {
        path: 'origins',
        label: 'Origins',
        kind: 'list',
        hint: 'A line each: https://app.example.com, https://*.example.com, or *',
      },
      {
        path: 'methods',
        label: 'Methods',
        kind: 'list',
        hint: 'A line each; those of the path unless given',
      },
      {
        path: 'headers',
        label: 'Headers that pages may send',
        kind: 'list',
        hint: 'A line each; all unless given',
      },
      { path: 'expose', label: 'Headers that pages may read', kind: 'list', hint: 'A line each' },
      { path: 'credentials', label: 'Pages may send cookies and credentials', kind: 'check' },
      seconds('max_age_seconds', 'Browsers remember the answer for'),
    ],
  },
  ip: {
    title: 'Networks',
    hint: 'From where requests are let in. Denied ones count before allowed ones.',
    base: {},
    fields: [
      {
        path: 'allow',
        label: 'Allow',
        kind: 'list',
        hint: 'An address or a network such as 10.0.0.0/8 in each line; all unless given',
      },
      { path: 'deny', label: 'Deny', kind: 'list', hint: 'An address or a network in each line' },
    ],
  },
  rate_limit: {
    title: 'Rate limit',
    hint: 'How many requests a caller may send. Several rules at once are edited as JSON.',
    base: {},
    fields: [
      { path: 'requests', label: 'Requests', kind: 'number' },
      seconds('window_seconds', 'In'),
      { path: 'by', label: 'Of one', kind: 'text', hint: 'address, key, subject, or header:NAME' },
      {
        path: 'on_failure',
        label: 'While Redis is away',
        kind: 'choice',
        options: [
          { value: '', label: 'Let requests through, as usual' },
          { value: 'open', label: 'Let requests through' },
          { value: 'closed', label: 'Refuse them' },
        ],
      },
    ],
  },
  auth: {
    title: 'Who may call',
    hint: 'By keys of the domain, which its settings make; passwords, signatures and tokens of an issuer are edited as JSON.',
    base: { api_key: {} },
    fields: [
      { path: 'api_key.header', label: 'Header of the key', kind: 'text', hint: 'X-Api-Key unless given' },
    ],
  },
  headers: {
    title: 'Headers',
    hint: 'What is changed in requests before the handler gets them, and in its answers.',
    base: {},
    fields: [
      ...changes('request'),
      ...changes('response'),
      {
        path: 'response.allow',
        label: 'Headers for the whole host that handlers may send',
        kind: 'list',
        hint: 'A line each, such as Clear-Site-Data; none unless given',
      },
      { path: 'security_headers', label: 'Add the usual security headers to answers', kind: 'check' },
    ],
  },
  redirect: {
    title: 'Redirect',
    hint: 'All requests are sent elsewhere.',
    base: {},
    fields: [
      { path: 'to', label: 'To', kind: 'text', hint: 'Such as https://new.example.com/' },
      {
        path: 'status',
        label: 'Status',
        kind: 'choice',
        options: [
          { value: '', label: '307, as usual' },
          ...['301', '302', '303', '307', '308'].map((value) => ({ value, label: value })),
        ],
      },
      { path: 'keep_path', label: 'Append path and query of the request', kind: 'check' },
    ],
  },
  maintenance: {
    title: 'Maintenance',
    hint: 'All requests are answered with 503 and a message.',
    base: {},
    fields: [
      { path: 'message', label: 'Message', kind: 'text' },
      seconds('retry_after_seconds', 'Try again after'),
    ],
  },
  body_limit: {
    title: 'Longest body',
    hint: 'Longer ones are refused with 413.',
    base: undefined,
    fields: [{ path: '', label: 'Bytes', kind: 'number', unit: 'bytes' }],
  },
  timeout: {
    title: 'Deadline',
    hint: 'A request that takes longer is answered with 504.',
    base: undefined,
    fields: [{ path: '', label: 'Milliseconds', kind: 'number', unit: 'milliseconds' }],
  },
  compress: {
    title: 'Compression',
    hint: 'Answers are compressed for clients that accept it.',
    base: {},
    fields: [
      { path: 'min_bytes', label: 'From', kind: 'number', unit: 'bytes', hint: 'Bytes; 1024 unless given' },
      { path: 'algorithms', label: 'Algorithms', kind: 'list', hint: 'A line each: br, zstd, gzip' },
    ],
  },
  validate: {
    title: 'Checks of requests',
    hint: 'What parameters and bodies have to be, as JSON Schemas.',
    base: undefined,
    fields: [],
  },
  websocket: {
    title: 'WebSockets',
    hint: 'From which pages they are opened, and what clients may send.',
    base: {},
    fields: [
      {
        path: 'allowed_origins',
        label: 'Origins besides the own host',
        kind: 'list',
        hint: 'A line each: https://app.example.com, https://*.example.com, or *',
      },
      {
        path: 'max_message_bytes',
        label: 'Longest message',
        kind: 'number',
        unit: 'bytes',
        hint: 'Bytes; 1 MiB unless given',
      },
      { path: 'messages_per_second', label: 'Messages a second', kind: 'number', hint: 'Of one client' },
    ],
  },
};

/** The texts of the fields, by their paths. A check is `true` or empty. */
export type FieldTexts = Readonly<Record<string, string>>;

export function textsOf({ fields }: PolicyForm, policy: unknown): FieldTexts {
  return Object.fromEntries(fields.map((field) => [field.path, textOf(field, valueAt(policy, field.path))]));
}

/**
 * The policy with these texts, and all else as it is. Several rules stay as they are: fields are about one.
 * @param texts of some fields
 * @returns undefined where nothing is given and the policy is nothing without it
 */
export function withTexts({ fields, base }: PolicyForm, policy: unknown, texts: FieldTexts): unknown {
  if (Array.isArray(policy)) return policy;
  return fields.reduce<unknown>((made, field) => {
    const text = texts[field.path];
    return text === undefined ? made : withValue(made, field.path, valueIn(field, text), base);
  }, policy ?? base);
}

/** Whether the fields show all of it. */
export function fitsForm(form: PolicyForm, policy: unknown): boolean {
  if (form.fields.length === 0) return false;
  return policy == null || sorted(withTexts(form, undefined, textsOf(form, policy))) === sorted(policy);
}

function textOf({ kind }: PolicyField, value: unknown): string {
  if (value === undefined || value === null) return '';
  if (kind === 'list' && Array.isArray(value)) return value.join('\n');
  if (kind === 'headers') return headerLines(value);
  return String(value);
}

function valueIn({ kind }: PolicyField, text: string): unknown {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (lines.length === 0) return undefined;
  if (kind === 'list') return lines;
  if (kind === 'check') return text === 'true';
  if (kind === 'headers') return headersOf(text);
  // The API says what is wrong with what is no number.
  const isNumber = (kind === 'number' || kind === 'choice') && !Number.isNaN(Number(text));
  return isNumber ? Number(text) : text;
}

/** What a policy has at the path of a field. */
export function valueAt(value: unknown, path: string): unknown {
  if (path === '') return value;
  return path.split('.').reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), value);
}

/** What has nothing in it any more goes, unless the policy is nothing without it. */
function withValue(policy: unknown, path: string, value: unknown, base: unknown): unknown {
  if (path === '') return value;
  const [name = '', ...rest] = path.split('.');
  const object = isObject(policy) ? policy : {};
  if (value === undefined && object[name] === undefined) return object;
  const inBase = valueAt(base, name);
  const member = withValue(object[name], rest.join('.'), value, inBase);
  const isEmpty = isObject(member) && Object.keys(member).length === 0;
  if (member !== undefined && !(isEmpty && inBase === undefined)) return { ...object, [name]: member };
  const { [name]: _, ...others } = object;
  return others;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** As JSON, whatever the order of members. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one,
  );
}
