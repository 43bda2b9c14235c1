/**
 * String formats that schemas refer to by name. Each returns the problem of a text, or undefined when it is valid;
 * users see the same text.
 */

import { isIP } from 'node:net';
import { isAscii } from '../util/text.js';
import { lockProblem } from './cargo-lock.js';
import { entryProblem, filePathProblem } from './file-paths.js';
import { filePatternProblem } from './file-patterns.js';
import { basePathProblem, routePathProblem } from './route-pattern.js';
import { problemOfVariableName, VARIABLE_NAME, VARIABLE_NAME_LENGTH } from './variable-names.js';

type Format = (text: string) => string | undefined;

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const HOST_LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;
const IN_EMAIL = '[^\\s@<>",;:\\u0000-\\u001f\\u007f-\\u009f]';
const EMAIL = new RegExp(`^${IN_EMAIL}{1,64}@${IN_EMAIL}{1,189}$`);
const POOL_ID = /^[A-Za-z0-9_.-]{1,64}$/;
const CRATE_NAME = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
const STATUS = /^[1-5](xx|[0-9]{2})$/;
const TRACE_ID = /^[0-9a-f]{32}$/;
const STEP = /^[1-9][0-9]{0,3}[mhd]$/;
/** A token of RFC 9110, section 5.6.2. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
/** RFC 9110, section 5.5, without what is not ASCII. */
const HEADER_VALUE = /^([!-~]([ -~\t]*[!-~])?)?$/;
/** The parser of URLs leaves line breaks out; where the text itself is used, they would begin another header. */
const VISIBLE = /^[!-~]+$/;
const REVISION = /^[0-9a-f]{40}$/;
const FEATURE = /^[A-Za-z0-9_][A-Za-z0-9_+.-]*$/;

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const RATE_LIMIT_BY = /^(address|key|subject|header:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128})$/;
/** Headers that policies may not change: those of the connection, and those by which requests are told apart. */
const OWN_HEADERS = [
  ...['connection', 'content-length', 'host', 'keep-alive', 'proxy-connection', 'te', 'trailer'],
  ...['traceparent', 'transfer-encoding', 'upgrade', 'x-request-id'],
];

/** Crates that every handler has already, or whose names Cargo reserves. */
const RESERVED_CRATES = ['std', 'core', 'alloc', 'test', 'proc_macro', 'rust_edge_gateway_sdk'];

export const FORMATS: Readonly<Record<string, Format>> = {
  'variable-name': problemOfVariableName,
  uuid: (text) => (UUID.test(text) ? undefined : 'must be a UUID'),
  /** One line of text that is not blank. */
  line: (text) => {
    if (text.trim() === '') return 'must not be empty';
    if (CONTROL_CHARACTER.test(text)) return 'must be one line, without control characters';
    return textProblem(text);
  },
  /** Any text the database can store. */
  text: textProblem,
  hostname: hostnameProblem,
  'hostname-or-any': (text) => {
    if (text === '*') return undefined;
    const problem = hostnameProblem(text);
    return problem && `${problem}, or "*" for all domains`;
  },
  'route-path': routePathProblem,
  /** Of a file of a source, relative to its folder. */
  'file-path': filePathProblem,
  'file-pattern': filePatternProblem,
  /** The same, of its code. */
  'entry-path': entryProblem,
  'cargo-lock': lockProblem,
  base64: (text) => (isBase64(text) ? undefined : 'must be base64, with its padding'),
  /** Like a path; leading and trailing slashes are optional. */
  'base-path': basePathProblem,
  /** http or https, without user and password; as it can stand in a header. */
  'web-url': webUrlProblem,
  'pool-id': (text) => (POOL_ID.test(text) ? undefined : 'must be 1 to 64 letters, digits, "_", "-" and "."'),
  /** Not `email`: what programs know by that name has no international characters. */
  'email-address': (text) =>
    EMAIL.test(text) && text.length <= 254 ? undefined : 'must be an e-mail address such as ada@example.com',
  'crate-name': crateNameProblem,
  'version-requirement': (text) =>
    isVersionRequirement(text)
      ? undefined
      : `must be a Cargo version requirement such as "1.2", "^1.2.3" or ">=1, <2", not "${text}"`,
  /** As it stands in a manifest, and in messages. */
  'git-url': (text) =>
    isPlainUrl(text)
      ? undefined
      : 'must be the URL of a git repository such as https://git.example.com/team/crate.git, without user and password',
  'git-revision': (text) =>
    REVISION.test(text)
      ? undefined
      : 'must be a whole revision, 40 hexadecimal digits in lower case: branches and tags come to mean another one',
  'registry-index': (text) =>
    text.startsWith('sparse+') && text.endsWith('/') && isPlainUrl(text.slice('sparse+'.length))
      ? undefined
      : 'must be the sparse index of a registry, such as sparse+https://crates.example.com/index/',
  'crate-folder': (text) => (text === '.' ? undefined : filePathProblem(text)),
  step: (text) =>
    STEP.test(text) ? undefined : 'must be whole minutes, hours or days, such as 1m, 10m, 1h or 1d',
  /** A status of HTTP, or a class of them. */
  status: (text) =>
    STATUS.test(text) ? undefined : 'must be a status such as 503, or a class such as 5xx, in lower case',
  'trace-id': (text) =>
    TRACE_ID.test(text)
      ? undefined
      : 'must be 32 digits in lower case, such as 0af7651916cd43dd8448eb211c80319c: the second part of traceparent',
  /** An address, or a network. */
  cidr: (text) =>
    isNetwork(text)
      ? undefined
      : `must be an address or a network such as 10.0.0.0/8 or 2001:db8::/32, not "${text}"`,
  'cors-origin': corsOriginProblem,
  'rate-limit-by': (text) =>
    RATE_LIMIT_BY.test(text) ? undefined : 'must be address, key, subject or header:<name>',
  'header-name': (text) =>
    HEADER_NAME.test(text) ? undefined : `must be the name of a header, not "${text}"`,
  /** One that a policy may change. */
  'changeable-header': (text) => {
    if (!HEADER_NAME.test(text)) return `must be the name of a header, not "${text}"`;
    return OWN_HEADERS.includes(text.toLowerCase()) ? 'is a header that the gateway itself sets' : undefined;
  },
  'header-value': (text) =>
    HEADER_VALUE.test(text) ? undefined : 'must be visible ASCII characters and spaces, without line breaks',
  feature: (text) =>
    FEATURE.test(text) && text.length <= 128
      ? undefined
      : `must be the name of a crate feature, not "${text}"`,
};

const NUMBER = '(?:0|[1-9]\\d{0,18})';
const PRERELEASE_PART = '(?:0|[1-9]\\d*|\\d*[A-Za-z-][0-9A-Za-z-]*)';
const PRERELEASE = `(?:-${PRERELEASE_PART}(?:\\.${PRERELEASE_PART})*)`;
const BUILD = '(?:\\+[0-9A-Za-z-]+(?:\\.[0-9A-Za-z-]+)*)';
const WILDCARD = '[*xX]';
const COMPARATOR_SOURCE = `(?:=|>=|<=|>|<|~|\\^)?\\s*${NUMBER}(?:\\.(?:${WILDCARD}(?:\\.${WILDCARD})?|${NUMBER}(?:\\.(?:${WILDCARD}|${NUMBER}${PRERELEASE}?${BUILD}?))?))?`;
const COMPARATOR = new RegExp(`^${COMPARATOR_SOURCE}$`);

const LABEL = '[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const NO_CONTROLS = '[^\\u0000-\\u001f\\u007f]*';
/** A character of a path, except `%`, and `.` and `:`, which are restricted by position. */
const PATH_CHARACTER = '[^\\u0000-\\u001f\\u007f-\\u009f\\s/?#{}*\\\\%.:]';
const HEX = '[0-9A-Fa-f]';
const MORE = `%[89ABab]${HEX}`;
/** Percent-encoded UTF-8 without control characters, slashes and dots: sequences of one, two, three and four bytes. */
const ENCODED = [
  `%2[0-9A-Da-d]|%[346]${HEX}|%5[0-9ABD-Fabd-f]|%7[0-9A-Ea-e]`,
  `%[Cc]2%[ABab]${HEX}|%([Cc][3-9A-Fa-f]|[Dd]${HEX})${MORE}`,
  `%[Ee]0%[ABab]${HEX}${MORE}|%[Ee][1-9A-CEFa-cef](${MORE}){2}|%[Ee][Dd]%[89]${HEX}${MORE}`,
  `%[Ff]0%[9ABab]${HEX}(${MORE}){2}|%[Ff][1-3](${MORE}){3}|%[Ff]4%8${HEX}(${MORE}){2}`,
].join('|');
const DOT = '(\\.|%2[Ee])';
const SLASH = '%(2[Ff]|5[Cc])';
const CHARACTER = `(${PATH_CHARACTER}|${ENCODED})`;
const PARAMETER_NAME = '[A-Za-z_][A-Za-z0-9_.-]*';
const PARAMETER = `\\{${PARAMETER_NAME}\\}`;
const CATCH_ALL = `\\{\\*${PARAMETER_NAME}\\}`;
/** A parameter does not follow another at once. */
const TEXT = `(${CHARACTER}|${DOT}|:)`;
const END_OF_PART = `(${TEXT}|${PARAMETER}${TEXT})*(${PARAMETER})?`;
const FROM_PARAMETER = `${DOT}{0,2}${PARAMETER}(${TEXT}${END_OF_PART})?`;
/** Neither one dot nor two. */
const PART = `((${DOT}{0,2}${CHARACTER}|${DOT}{1,2}:|${DOT}{3})${END_OF_PART}|${FROM_PARAMETER})`;
/** What follows an encoded slash may be empty, and begin with a colon. */
const NEXT_PARTS = `(${SLASH}((${DOT}{0,2}(${CHARACTER}|:)|${DOT}{3})${END_OF_PART}|${FROM_PARAMETER})?)`;
const SEGMENT = `(${PART}${NEXT_PARTS}*|${NEXT_PARTS}+)`;

const ORIGIN_LABEL = '[a-z][a-z0-9]{0,30}(-[a-z0-9]{1,10})?';
const BYTE = '(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const GROUP = '[0-9A-Fa-f]{1,4}';
const NETWORK_V4 = `${BYTE}(\\.${BYTE}){3}(/(3[0-2]|[12]?[0-9]))?`;
const NETWORK_V6 = `((${GROUP}:){7}${GROUP}|(${GROUP}:){1,6}:|::)(/(12[0-8]|1[01][0-9]|[1-9]?[0-9]))?`;
/** A pattern of the own headers in any case of letters: there is no flag for that in a schema. */
const OWN_HEADER = OWN_HEADERS.join('|').replaceAll(
  /[a-z]/g,
  (letter) => `[${letter.toUpperCase()}${letter}]`,
);

/** At the beginning of a path: no two of its parameters have the same name. */
export const NO_NAME_TWICE = '(?!.*\\{\\*?([^{}]+)\\}.*\\{\\*?\\1\\})';

/** A format expressed in other JSON Schema keywords. */
interface Keywords {
  readonly pattern: string;
  readonly maxLength?: number;
}

/** Without what a URL has otherwise. */
const WEB_ADDRESS = 'https://([a-z][a-z0-9]{0,61}\\.){1,5}[a-z]{2,20}/([A-Za-z0-9_-]{1,20}/){0,3}';

/** A name of a file, without what a file system could take for the same one. */
const FILE_NAME = '[a-z0-9_][a-z0-9_-]{0,59}';

/**
 * The formats in standard JSON Schema keywords, for the OpenAPI description of the API. An approximation for clients
 * that generate requests from it; `FORMATS` decides what is accepted.
 */
export const FORMAT_KEYWORDS: Readonly<Record<string, Keywords>> = {
  line: { pattern: `^${NO_CONTROLS}[^\\u0000-\\u0020\\u007f-\\u00a0\\s]${NO_CONTROLS}$` },
  text: { pattern: '^[^\\u0000]*$' },
  'hostname-or-any': { pattern: `^(\\*|${LABEL}(\\.${LABEL})*)$`, maxLength: 253 },
  // Their length limit counts the percent-encoded form, which no keyword can express.
  'route-path': { pattern: `^${NO_NAME_TWICE}(/|((/${SEGMENT})+(/${CATCH_ALL})?|/${CATCH_ALL})/?)$` },
  'base-path': { pattern: `^${NO_NAME_TWICE}(/?|/?${SEGMENT}(/${SEGMENT})*/?)$` },
  'web-url': { pattern: '^https?://([a-z][a-z0-9]{0,61}\\.){1,5}[a-z]{2,20}(:[0-9]{1,4})?/[A-Za-z0-9/_-]*$' },
  'file-path': { pattern: `^${FILE_NAME}(/${FILE_NAME}){0,3}\\.[a-z]{1,8}$` },
  'entry-path': { pattern: `^${FILE_NAME}(/${FILE_NAME}){0,3}\\.rs$` },
  'cargo-lock': {
    pattern:
      '^version = [34]\n(\n\\[\\[package\\]\\]\nname = "[a-z]{1,9}"\nversion = "[0-9]\\.[0-9]\\.[0-9]"\n){1,3}$',
  },
  base64: { pattern: BASE64.source },
  'pool-id': { pattern: POOL_ID.source },
  'email-address': { pattern: EMAIL.source, maxLength: 254 },
  'crate-name': { pattern: CRATE_NAME.source },
  'version-requirement': {
    pattern: `^ *(${WILDCARD}|${COMPARATOR_SOURCE}( *, *${COMPARATOR_SOURCE}){0,31}) *$`
      .replaceAll('\\s', ' ')
      .replaceAll('\\d', '[0-9]'),
    maxLength: 200,
  },
  'git-url': { pattern: `^${WEB_ADDRESS}$` },
  'git-revision': { pattern: REVISION.source },
  'registry-index': { pattern: `^sparse\\+${WEB_ADDRESS}$` },
  'crate-folder': { pattern: `^(\\.|${FILE_NAME}(/${FILE_NAME}){0,3})$` },
  step: { pattern: STEP.source },
  status: { pattern: STATUS.source },
  'trace-id': { pattern: TRACE_ID.source },
  cidr: { pattern: `^(${NETWORK_V4}|${NETWORK_V6})$` },
  // Neither with the ports that browsers leave out, nor with numbers that could be an address.
  'cors-origin': {
    pattern: `^(\\*|https?://(\\*\\.)?${ORIGIN_LABEL}(\\.${ORIGIN_LABEL}){0,5}(:[1-9][0-9]{3})?)$`,
  },
  'rate-limit-by': { pattern: RATE_LIMIT_BY.source },
  'header-name': { pattern: HEADER_NAME.source },
  'changeable-header': { pattern: HEADER_NAME.source.replace('^', `^(?!(${OWN_HEADER})$)`) },
  'header-value': { pattern: HEADER_VALUE.source },
  feature: { pattern: FEATURE.source, maxLength: 128 },
  'variable-name': { pattern: VARIABLE_NAME, maxLength: VARIABLE_NAME_LENGTH },
};

/** Whether a value is base64 (RFC 4648, section 4), with its padding. */
export function isBase64(value: unknown): value is string {
  return typeof value === 'string' && BASE64.test(value);
}

/** Why PostgreSQL cannot store a text unchanged; undefined when it can. */
export function textProblem(text: string): string | undefined {
  if (text.includes('\u0000')) return 'must not have NUL characters';
  return /\p{Surrogate}/u.test(text) ? 'must be Unicode text without lone surrogates' : undefined;
}

function hostnameProblem(text: string): string | undefined {
  if (!isAscii(text)) {
    return 'must be a hostname in ASCII; write an international name in its "xn--" form';
  }
  const fits = text.length <= 253 && text.split('.').every((label) => HOST_LABEL.test(label));
  return fits ? undefined : 'must be a hostname such as api.example.com, without scheme, port or path';
}

function isNetwork(text: string): boolean {
  const [address = '', bits, ...more] = text.split('/');
  const kind = isIP(address);
  if (kind === 0 || address.includes('%') || more.length > 0) return false;
  return bits === undefined || (/^(0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= (kind === 4 ? 32 : 128));
}

/** `*`, or scheme, host and port as browsers send them; the first label of the host may be `*`. */
function corsOriginProblem(text: string): string | undefined {
  if (text === '*') return undefined;
  const advice = 'must be an origin such as https://app.example.com or https://*.example.com, or "*"';
  const plain = text.replace('://*.', '://any.');
  if (!URL.canParse(plain)) return advice;
  const url = new URL(plain);
  if (!/^https?:$/.test(url.protocol) || url.username || url.password || plain.includes('*')) return advice;
  if (plain === url.origin) return undefined;
  if (url.pathname !== '/' || url.search || url.hash || text.endsWith('/'))
    return `${advice}: without a path`;
  return `${advice}, as browsers send it: ${url.origin.replace('://any.', text.includes('://*.') ? '://*.' : '://any.')}`;
}

function webUrlProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) return 'must be a URL such as https://example.com/hook';
  if (url.username || url.password) return 'must have no user and no password';
  return VISIBLE.test(text)
    ? undefined
    : 'must have visible ASCII characters only: write others as %20, and international hosts in their "xn--" form';
}

/** Of a web server, in the one form that URLs have, without what is secret or means nothing to git. */
function isPlainUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || !VISIBLE.test(text)) return false;
  return url.href === text && `${url.username}${url.password}${url.search}${url.hash}` === '';
}

function crateNameProblem(name: string): string | undefined {
  if (!CRATE_NAME.test(name)) {
    return 'is not a crate name: a letter, then up to 63 letters, digits, "-" and "_"';
  }
  return RESERVED_CRATES.includes(name.replaceAll('-', '_').toLowerCase())
    ? 'must not be listed: every handler has it already'
    : undefined;
}

/** Comma-separated comparators as the `semver` crate reads them: `1`, `^1.2`, `~1.2.3-rc.1`, `>=1, <2`, `1.*`, `*`. */
function isVersionRequirement(text: string): boolean {
  if (text.length > 200 || CONTROL_CHARACTER.test(text)) return false;
  const comparators = text.split(',').map((part) => part.trim());
  // A lone `*` matches everything; the semver crate does not allow it beside others.
  if (comparators.length === 1 && /^[*xX]$/.test(comparators[0] ?? '')) return true;
  return comparators.length <= 32 && comparators.every((comparator) => COMPARATOR.test(comparator));
}
