/** A server of Deno with the response of the handler. Prints its port. */
const BODY = '{"hello":"ada","from":"a handler"}';
Deno.serve(
  { hostname: '127.0.0.1', port: 0, onListen: ({ port }) => console.log(port) },
  () => new Response(BODY, { headers: { 'content-type': 'application/json' } }),
);
