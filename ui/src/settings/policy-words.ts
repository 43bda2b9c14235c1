/** What a policy is set to, in words. Its JSON is for those who write it. */
import { count } from '../base/text.js';
import type { FieldHints } from '../fields/schema.js';
import { isObject, valueAt } from './policy-form.js';
import { POLICY_HINTS, type PolicyName } from './policy-hints.js';

/** Names and values come from users: what is shown of them is hostile text. */
export function wordsOf(name: PolicyName, policy: unknown): string {
  if (name === 'rate_limit') return [policy].flat().map(ruleWords).join('; ');
  if (name === 'auth') return authWords(policy);
  if (name === 'validate') return validateWords(policy);
  return Object.entries(POLICY_HINTS[name].fields ?? {})
    .map(([path, field]) => fieldWords(path, field, valueAt(policy, path)))
    .filter((words) => words !== '')
    .join('; ');
}

function ruleWords(rule: unknown): string {
  const { requests, window_seconds, by, on_failure } = membersOf(rule);
  const limit = `${count(Number(requests))} requests in ${seconds(Number(window_seconds))} by ${by}`;
  if (on_failure === 'closed') return `${limit}, none while Redis is away`;
  return on_failure === 'open' ? `${limit}, all while Redis is away` : limit;
}

/** The ways in which callers can show who they are. */
function authWords(auth: unknown): string {
  const { api_key, basic, hmac, jwt } = membersOf(auth);
  const ways = [
    api_key !== undefined && `a key in ${membersOf(api_key)['header'] ?? 'X-Api-Key'}`,
    basic !== undefined && `a password of ${Object.keys(membersOf(membersOf(basic)['users'])).join(', ')}`,
    hmac !== undefined && `a signature as of ${membersOf(hmac)['style']}`,
    jwt !== undefined && `a token of ${membersOf(jwt)['issuer']}`,
  ];
  return ways.filter((way) => way !== false).join(', or ');
}

const MODES = new Map<unknown, string>([
  ['off', 'Not checked'],
  ['report', 'What is wrong is only logged'],
  ['enforce', 'What is wrong is refused'],
]);

function validateWords(validate: unknown): string {
  const { mode, parameters, body } = membersOf(validate);
  const number = Array.isArray(parameters) ? parameters.length : 0;
  const checked = [
    number > 0 && (number === 1 ? 'one parameter' : `${count(number)} parameters`),
    body !== undefined && 'the body',
  ].filter((part) => part !== false);
  return [MODES.get(mode) ?? String(mode), ...(checked.length > 0 ? [checked.join(' and ')] : [])].join(': ');
}

function fieldWords(path: string, { label, unit }: FieldHints, value: unknown): string {
  if (value === undefined || value === null || value === false) return '';
  if (value === true) return label;
  const words = unit === undefined || typeof value !== 'number' ? plainWords(value) : UNITS[unit](value);
  // Where its only value is the policy, the title says what it is.
  return path === '' ? words : `${label}: ${words}`;
}

function plainWords(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ');
  if (!isObject(value)) return String(value);
  return Object.entries(value)
    .map(([name, one]) => `${name}: ${one}`)
    .join(', ');
}

const seconds = (value: number) => `${count(value)} s`;

/** Exact: 64 KiB, and 65,000 bytes. */
function size(value: number): string {
  const [unit, power] = SIZES.find(([, power]) => value >= power && value % power === 0) ?? ['bytes', 1];
  return `${count(value / power)} ${unit}`;
}

const SIZES = [
  ['GiB', 1_024 ** 3],
  ['MiB', 1_024 ** 2],
  ['KiB', 1_024],
] as const;

const UNITS = {
  seconds,
  milliseconds: (value: number) => (value % 1_000 === 0 ? seconds(value / 1_000) : `${count(value)} ms`),
  bytes: size,
} as const;

const membersOf = (value: unknown) => (isObject(value) ? value : {});
