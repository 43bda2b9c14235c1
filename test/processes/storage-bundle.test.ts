/** A bundle of handlers for SDK 0.1 that keep records in a storage: it runs as it stands, once its pool is bound. */
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { BundleImported } from '../../src/api/imports/imports.schema.js';
import { expectData } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { call } from '../support/http.js';
import { type Stack, startStack } from '../support/processes.js';
import { activeService } from '../support/test-services.js';
import { zipOf } from '../support/zip.js';

const operation = (operationId: string, id = false) => ({
  operationId,
  ...(id && { parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] }),
  responses: { 200: { description: 'ok' } },
});
const SPEC = JSON.stringify({
  openapi: '3.0.3',
  info: { title: 'Notes', version: '1' },
  paths: {
    '/notes': { get: operation('listNotes'), post: operation('createNote') },
    '/notes/{id}': {
      get: operation('getNote', true),
      put: operation('updateNote', true),
      delete: operation('deleteNote', true),
    },
  },
});
const handler = (body: string) => `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let notes = Storage::database("db", "notes");
    ${body}
}

handler_loop_result!(handle);
`;
const ID = 'let id = req.path_param("id").cloned().unwrap_or_default();';
const HANDLERS = {
  list_notes: 'Ok(Response::ok(notes.list(req.query_param("status").map(|status| status.as_str()))?))',
  create_note:
    'let note: JsonValue = req.json()?; let id = note["id"].as_str().unwrap_or("none").to_string(); ' +
    'notes.create(&id, &note)?; Ok(Response::created(note))',
  get_note: `${ID} match notes.get(&id)? { Some(note) => Ok(Response::ok(note)), None => Ok(Response::not_found()) }`,
  update_note: `${ID} let note: JsonValue = req.json()?; notes.update(&id, &note)?; Ok(Response::ok(note))`,
  delete_note: `${ID} Ok(Response::ok(json!({ "deleted": notes.delete(&id)? })))`,
};

describe('a bundle of handlers for SDK 0.1', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(() => stack.close());

  it('runs a bundle for SDK 0.1 without changes when its manifest names the service', async () => {
    await activeService(stack.api, 'sqlite', { path: 'notes.db' }, 'notes');
    const files = {
      'openapi.yml': SPEC,
      'bundle.yml': 'bindings:\n  db: notes\n',
      ...Object.fromEntries(
        Object.entries(HANDLERS).map(([name, body]) => [`api/${name}.rs`, handler(body)]),
      ),
    };
    const form = multipart([{ name: 'bundle', filename: 'notes.zip', content: zipOf(files) }]);
    const query = 'domain=*&compile=true&start=true';
    const answer = await stack.api.post(`/api/import/bundle?${query}`, form.body, { headers: form.headers });
    const imported = expectData<Static<typeof BundleImported>>(answer);
    expect(imported).to.deep.include({ handlers_matched: 5, compiled: 5, started: 5, errors: [] });

    const note = (method: string, at: string, body?: object) =>
      call(`${stack.gatewayUrl}/notes${at}`, {
        method,
        ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      }).then(({ status, text }) => [status, JSON.parse(text)]);
    expect(await note('GET', '')).to.deep.equal([200, []]);
    const [first, second] = [
      { id: 'a', text: 'tea', status: 'open' },
      { id: 'b', text: 'milk', status: 'done' },
    ];
    expect(await note('POST', '', first)).to.deep.equal([201, first]);
    expect(await note('POST', '', second)).to.deep.equal([201, second]);
    expect(await note('GET', '?status=done')).to.deep.equal([200, [second]]);
    expect(await note('PUT', '/a', { ...first, status: 'done' })).to.deep.equal([
      200,
      { ...first, status: 'done' },
    ]);
    expect((await note('GET', '?status=done'))[1]).to.have.length(2);
    expect(await note('DELETE', '/a')).to.deep.equal([200, { deleted: true }]);
    expect(await note('DELETE', '/a')).to.deep.equal([200, { deleted: false }]);
    expect((await note('GET', '/a'))[0]).to.equal(404);
    expect(await note('GET', '/b')).to.deep.equal([200, second]);
  });
});
