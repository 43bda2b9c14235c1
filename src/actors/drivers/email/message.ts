/** The payload of a `send` call. Values that become headers or SMTP commands are checked against injection. */
import { FORMATS } from '../../../model/formats.js';
import { Base64, decodeBase64, invalid, payloadReader } from '../../operations.js';
import { type Static, type TSchema, Type } from '../../schema.js';

/** An address with a display name. */
export interface Mailbox {
  readonly address: string;
  readonly name: string;
}

/** Maximum number of recipients, which all servers accept. */
const MAX_RECIPIENTS = 100;
const MAX_ATTACHMENTS = 100;
/** Hardly any server accepts a mail that is larger after encoding. */
const MAX_CONTENT_BYTES = 32 * 1024 * 1024;

const CONTROL_CHARACTER = /[\p{Cc}\p{Zl}\p{Zp}]/u;
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(?:; ?[\w!#$&^.+-]+=(?:[\w!#$&^.+-]+|"[^"\\]*"))*$/;

/** One line, of the maximum length in a mail. */
function line(problemOf: (text: string) => string | undefined = () => undefined) {
  return Type.String({
    maxLength: 998,
    refine: (text: string) =>
      CONTROL_CHARACTER.test(text) ? 'must be one line, without control characters' : problemOf(text),
  });
}

/** An optional member, which may also be null. */
function optional<T extends TSchema>(schema: T) {
  return Type.Optional(Type.Unsafe<Static<T> | null>({ ...schema, nullable: true }));
}

function members<T extends Parameters<typeof Type.Object>[0]>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

const Address = line((text) => FORMATS['email-address']?.(text));
const Addresses = optional(Type.Array(Address));
const MediaType = line((text) =>
  MEDIA_TYPE.test(text) ? undefined : 'must be a media type such as application/pdf',
);

const Mail = members({
  to: Addresses,
  cc: Addresses,
  bcc: Addresses,
  reply_to: optional(Address),
  from: optional(members({ address: Address, name: optional(line()) })),
  subject: line(),
  text: optional(Type.String()),
  html: optional(Type.String()),
  attachments: optional(
    Type.Array(
      members({
        filename: line((text) => (text === '' ? 'must not be empty' : undefined)),
        content_type: optional(MediaType),
        base64: Base64,
      }),
      { maxItems: MAX_ATTACHMENTS },
    ),
  ),
});

const readMail = payloadReader(Mail);

/**
 * Parses a mail into options of nodemailer.
 * @param sender the default sender
 * @throws ServiceError `invalid` naming the member
 */
export function readMessage(payload: Buffer, sender: Mailbox) {
  const { from, reply_to, subject, text, html, ...mail } = readMail(payload);
  const [to, cc, bcc] = [mail.to ?? [], mail.cc ?? [], mail.bcc ?? []];
  const count = to.length + cc.length + bcc.length;
  if (count === 0) throw invalid('payload.to', 'must have at least one address');
  if (count > MAX_RECIPIENTS) {
    throw invalid('payload.to', `with cc and bcc, must have at most ${MAX_RECIPIENTS} addresses`);
  }
  if (typeof text !== 'string' && typeof html !== 'string') {
    throw invalid('payload.text', 'is required, unless there is "html"');
  }
  const attachments = (mail.attachments ?? []).map(({ filename, content_type, base64 }) => ({
    filename,
    content: decodeBase64(base64) ?? Buffer.alloc(0),
    ...(content_type && { contentType: content_type }),
  }));
  const size =
    Buffer.byteLength(text ?? '') +
    Buffer.byteLength(html ?? '') +
    attachments.reduce((sum, { content }) => sum + content.length, 0);
  if (size > MAX_CONTENT_BYTES) {
    throw invalid('payload', `the mail has ${size} bytes; at most ${MAX_CONTENT_BYTES} are sent`);
  }
  return {
    from: from ? { address: from.address, name: from.name ?? '' } : sender,
    to,
    cc,
    bcc,
    ...(reply_to && { replyTo: reply_to }),
    subject,
    ...(typeof text === 'string' && { text }),
    ...(typeof html === 'string' && { html }),
    attachments,
  };
}
