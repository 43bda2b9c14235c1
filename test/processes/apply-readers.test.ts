/** Who reads an apply sees of its plan what they may read, and the audit names what it has changed. */
import { expect } from 'chai';
import { makeToken, PASSWORD, signIn } from '../support/access.js';
import { type ApplyShown, applyFiles, folderOf } from '../support/applies.js';
import { expectData } from '../support/expect.js';
import { numbered } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { must, type Stack, startStack } from '../support/processes.js';

interface Shown {
  readonly plan: { readonly changes: readonly { readonly kind: string; readonly name: string }[] };
}

describe('an apply and its readers', function () {
  this.timeout(120_000);
  let stack: Stack;
  let id: string;
  before(async () => {
    stack = await startStack();
    const files = folderOf('readers', 'readers.example', [{ route: '/a', code: numbered(1) }]);
    id = expectData<ApplyShown>(await applyFiles(stack.api, files)).id;
  });
  after(() => stack?.close());

  it('writes the name of a created endpoint to the audit of an apply', async () => {
    const rows = expectData<{ items: { action: string }[] } | { action: string }[]>(
      await stack.api.get('/api/audit?limit=20'),
    );
    expect(JSON.stringify(rows)).to.include('create endpoint \\"POST readers.example/a\\"');
  });

  it('leaves out of plan and events of an apply the kinds of objects that a token may not read', async () => {
    const whole = expectData<Shown>(await stack.api.get(`/api/applies/${id}`));
    expect(whole.plan.changes.map(({ kind }) => kind)).to.deep.equal(['domain', 'endpoint']);
    const admin = { email: 'admin@readers.example', name: 'Admin', password: PASSWORD, role: 'admin' };
    await must(stack.api.post('/api/users', admin));
    const headers = await signIn(stack.api, admin.email);
    const reader = await makeToken(stack.api, { headers }, ['endpoints:read']);
    const part = expectData<Shown>(await stack.api.get(`/api/applies/${id}`, reader));
    expect(part.plan.changes.map(({ kind }) => kind)).to.deep.equal(['endpoint']);
    const events = await call(`${stack.apiUrl}/api/applies/${id}/events`, { headers: { ...reader.headers } });
    expect(events.text).to.include('event: done').and.not.include('"kind":"domain"');
  });
});
