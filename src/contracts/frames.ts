/**
 * What frames are made of, between handlers, the gateway and services.
 *
 * `npm run contracts` has written this file from `rust/sdk/core/src/wire/frame.rs`: change it there.
 */

/** The version of requests and responses that are one frame. */
export const VERSION = 1;

/** Length of the fixed header, in bytes. */
export const HEADER_BYTES = 16;

/** Longest head, in bytes (1 MiB). */
export const MAX_HEAD_BYTES = 1048576;

/** Longest body, in bytes (64 MiB). */
export const MAX_BODY_BYTES = 67108864;

/** What a frame is. */
export const KIND = {
  /** Gateway to handler. */
  request: 1,
  /** Handler to gateway. */
  response: 2,
  /** Handler to gateway: the head of a response whose body follows. */
  stream: 3,
  /** Either way: a piece of a body, or of a message. */
  data: 4,
  /** Either way: the end of a body. */
  end: 5,
  /** Either way: the stream is over before its end. */
  reset: 6,
  /** Either way: more may be sent. */
  credit: 7,
  /** Gateway to handler: the head of a request whose body follows, or of a WebSocket. */
  open: 8,
  /** Either way: the last piece of a text message. */
  text: 9,
  /** Either way: the last piece of a binary message. */
  binary: 10,
  /** Either way: a ping of a WebSocket. */
  ping: 11,
  /** Either way: a pong of a WebSocket. */
  pong: 12,
  /** Either way: the end of a WebSocket. */
  close: 13,
  /** Gateway to handler: memory for what follows of a stream. */
  memory: 14,
  /** Handler to gateway: the next bytes of a stream are in that memory. */
  shared: 15,
} as const;
