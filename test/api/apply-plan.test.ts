/** Plans of folders: what they would change, what stands against them, and what is wrong with them. */
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';

interface Plan {
  readonly stack: string;
  readonly plan_hash: string;
  readonly changes: readonly {
    readonly action: string;
    readonly kind: string;
    readonly name: string;
    readonly fields: readonly { path: string; before: unknown; after: unknown; diff?: string }[];
  }[];
  readonly warnings: readonly string[];
}

const CODE = 'fn main() {}\n';
const HELLO = `
stack: shop
domains:
  - host: API.shop.example
    variables: {GREETING: hi}
collections:
  - host: api.shop.example
    name: pets
    base_path: /pets
endpoints:
  - host: api.shop.example
    method: GET
    route: /hello
    handler: src/hello.rs
    limits: {timeout_ms: 1000}
  - host: api.shop.example
    method: GET
    collection: pets
    path: /{id}
    name: getPet
`;

describe('plans of applies', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  const plan = (files: object, query = '') => api.post(`/api/apply?dry_run=true${query}`, { files });

  it('show what would be created, in the order of writing', async () => {
    const planned = expectData<Plan>(await plan({ 'edge.yaml': HELLO, 'src/hello.rs': CODE }));
    expect(planned.stack).to.equal('shop');
    expect(planned.changes.map(({ action, kind, name }) => `${action} ${kind} ${name}`)).to.deep.equal([
      'create domain api.shop.example',
      'create collection api.shop.example/pets',
      'create endpoint GET api.shop.example/hello',
      'create endpoint GET api.shop.example/pets/{id}',
    ]);
    const again = expectData<Plan>(await plan({ 'edge.yaml': HELLO, './src/hello.rs': CODE }));
    expect(again.plan_hash).to.equal(planned.plan_hash);
  });

  it('tell all problems at once, with file and line', async () => {
    const response = await plan({
      'edge.yaml':
        'stack: s\ndomains:\n  - host: a b\nendpoints:\n  - {host: x.example, method: GET, route: /a, handler: no.rs}\n',
    });
    expectFailure(response, 'invalid_folder', /edge\.yaml:3: domains\.0\.host: must be a hostname/);
    expectFailure(response, 'invalid_folder', /edge\.yaml:5: endpoints\.0: handler: there is no file no\.rs/);
  });
});
