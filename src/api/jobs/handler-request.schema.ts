/** The members of a request that the gateway itself sends to a handler (`src/model/handler-request.ts`). */
import { Type } from '@sinclair/typebox';
import { oneOf, optional } from '../route/schemas.js';

export const HandlerRequestBody = optional({
  method: oneOf(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH'], {
    description: 'The method of the endpoint; HEAD for GET',
  }),
  path: Type.String({
    maxLength: 8_192,
    description: 'Path and query; the route of the endpoint, where that has no parameters',
  }),
  // Refused, not ignored: whoever gives one expects the request to go there.
  url: Type.Unsafe<never>({
    not: {},
    description: 'the request goes to the handler of this endpoint only, never to a URL; give a path',
  }),
  headers: Type.Record(Type.String(), Type.String({ maxLength: 8_192 }), { description: 'ASCII values' }),
  body: Type.Unsafe<unknown>({
    type: ['string', 'object', 'array'],
    description: 'A text; an object or an array is sent as JSON',
  }),
  body_base64: Type.String({ description: 'Bytes, instead of `body`' }),
});
