/**
 * The payload of a `send` call, which comes from a handler: what becomes a header, or a command to the server, must not
 * be able to become two.
 */
import { toError } from '../../errors.js';
import { FORMATS } from '../../validation/formats.js';
import { decodeBase64 } from '../base64.js';
import { ServiceError } from '../service-error.js';

/** An address, with a name for people. */
export interface Mailbox {
  readonly address: string;
  readonly name: string;
}

export interface Attachment {
  readonly filename: string;
  readonly contentType?: string;
  readonly content: Buffer;
}

/** A mail, as nodemailer takes it. */
export interface Message {
  readonly from: Mailbox;
  readonly to: string[];
  readonly cc: string[];
  readonly bcc: string[];
  readonly replyTo?: string;
  readonly subject: string;
  readonly text?: string;
  readonly html?: string;
  readonly attachments: Attachment[];
}

/** Servers take at least as many for one mail. */
const MAX_RECIPIENTS = 100;
const MAX_ATTACHMENTS = 100;
/** Beyond this, after encoding, hardly any server takes a mail. */
const MAX_CONTENT_BYTES = 32 * 1024 * 1024;
const MAX_LINE_LENGTH = 998;

const CONTROL_CHARACTER = /[\p{Cc}\p{Zl}\p{Zp}]/u;
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:; ?[\w!#$&^.+-]+=(?:[\w!#$&^.+-]+|"[^"\\]*"))*$/;

type Members = Readonly<Record<string, unknown>>;

const MESSAGE_MEMBERS = ['to', 'cc', 'bcc', 'reply_to', 'from', 'subject', 'text', 'html', 'attachments'];

/**
 * Reads a mail.
 * @param sender whom it is from, unless it says so itself
 * @throws ServiceError invalid naming the member
 */
export function readMessage(payload: Buffer, sender: Mailbox): Message {
  const mail = members(parse(payload), '', MESSAGE_MEMBERS);
  const [to, cc, bcc] = ['to', 'cc', 'bcc'].map((name) => addresses(mail[name], name)) as [
    string[],
    string[],
    string[],
  ];
  const count = to.length + cc.length + bcc.length;
  if (count === 0) throw invalid('to', 'must have at least one address');
  if (count > MAX_RECIPIENTS)
    throw invalid('to', `with cc and bcc, must have at most ${MAX_RECIPIENTS} addresses`);
  const text = optional(mail['text'], 'text', body);
  const html = optional(mail['html'], 'html', body);
  if (text === undefined && html === undefined) throw invalid('text', 'is required, unless there is "html"');
  const attachments = optional(mail['attachments'], 'attachments', readAttachments) ?? [];
  requireSize(text, html, attachments);
  const replyTo = optional(mail['reply_to'], 'reply_to', address);
  return {
    from: optional(mail['from'], 'from', readSender) ?? sender,
    to,
    cc,
    bcc,
    ...(replyTo !== undefined && { replyTo }),
    subject: line(mail['subject'], 'subject'),
    ...(text !== undefined && { text }),
    ...(html !== undefined && { html }),
    attachments,
  };
}

function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString());
  } catch (cause) {
    throw new ServiceError('invalid', `payload: must be JSON: ${toError(cause).message}`, { cause });
  }
}

function addresses(value: unknown, name: string): string[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid(name, 'must be an array of addresses');
  return value.map((item, i) => address(item, `${name}[${i}]`));
}

function readSender(value: unknown, name: string): Mailbox {
  const sender = members(value, name, ['address', 'name']);
  return {
    address: address(sender['address'], `${name}.address`),
    name: optional(sender['name'], `${name}.name`, line) ?? '',
  };
}

function readAttachments(value: unknown, name: string): Attachment[] {
  if (!Array.isArray(value)) throw invalid(name, 'must be an array');
  if (value.length > MAX_ATTACHMENTS) throw invalid(name, `must have at most ${MAX_ATTACHMENTS} items`);
  return value.map((item, i) => readAttachment(item, `${name}[${i}]`));
}

function readAttachment(value: unknown, name: string): Attachment {
  const attachment = members(value, name, ['filename', 'content_type', 'base64']);
  const filename = line(attachment['filename'], `${name}.filename`);
  if (filename === '') throw invalid(`${name}.filename`, 'must not be empty');
  const contentType = optional(attachment['content_type'], `${name}.content_type`, mediaType);
  const base64 = attachment['base64'];
  const content = typeof base64 === 'string' ? decodeBase64(base64) : undefined;
  if (!content) throw invalid(`${name}.base64`, 'must be base64');
  return { filename, content, ...(contentType !== undefined && { contentType }) };
}

function requireSize(
  text: string | undefined,
  html: string | undefined,
  attachments: readonly Attachment[],
): void {
  const size =
    Buffer.byteLength(text ?? '') +
    Buffer.byteLength(html ?? '') +
    attachments.reduce((sum, { content }) => sum + content.length, 0);
  if (size <= MAX_CONTENT_BYTES) return;
  throw new ServiceError(
    'invalid',
    `payload: the mail has ${size} bytes; at most ${MAX_CONTENT_BYTES} are sent`,
  );
}

function address(value: unknown, name: string): string {
  const text = line(value, name);
  const problem = FORMATS['email']?.(text);
  if (problem !== undefined) throw invalid(name, problem);
  return text;
}

function line(value: unknown, name: string): string {
  if (typeof value !== 'string') throw invalid(name, value === undefined ? 'is required' : 'must be a text');
  if (CONTROL_CHARACTER.test(value)) throw invalid(name, 'must be one line, without control characters');
  if (value.length > MAX_LINE_LENGTH) throw invalid(name, `must have at most ${MAX_LINE_LENGTH} characters`);
  return value;
}

function mediaType(value: unknown, name: string): string {
  const text = line(value, name);
  if (!MEDIA_TYPE.test(text)) throw invalid(name, 'must be a media type such as application/pdf');
  return text;
}

function body(value: unknown, name: string): string {
  if (typeof value !== 'string') throw invalid(name, 'must be a text');
  return value;
}

function optional<T>(value: unknown, name: string, read: (value: unknown, name: string) => T): T | undefined {
  return value === undefined || value === null ? undefined : read(value, name);
}

function members(value: unknown, name: string, known: readonly string[]): Members {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid(name, 'must be an object');
  const unknownName = Object.keys(value).find((member) => !known.includes(member));
  if (unknownName !== undefined) {
    throw invalid(
      name === '' ? unknownName : `${name}.${unknownName}`,
      `is not accepted; possible are ${known.join(', ')}`,
    );
  }
  return value as Members;
}

function invalid(member: string, problem: string): ServiceError {
  return new ServiceError('invalid', `payload${member === '' ? '' : `.${member}`}: ${problem}`);
}
