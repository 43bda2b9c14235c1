/** Requests to the management API with arbitrary values, of which none may be an error of the API itself. */
import { expect } from 'chai';
import fc from 'fast-check';
import { ROUTES } from '../../src/api/app.js';
import { startApi, type TestApi } from './api.js';
import { expectData, NO_ID } from './expect.js';

/** Values that have broken APIs before, among any others. */
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: 'binary' }),
  fc.constantFrom<unknown>(
    NO_ID,
    '\u0000',
    '\ud800',
    '*',
    '/a/{b}',
    'GET',
    'a.example',
    'redis',
    { host: 'h' },
    { serde: '1' },
    1e308,
    -1,
    '',
    null,
    [],
    {},
  ),
);

const KEY = 'a key';
const WITH_KEY = { authorization: `Bearer ${KEY}` };

/** By the names of fields: values that are accepted, so that a wrong one is the only thing that is wrong. */
const FINE: Readonly<Record<string, unknown>> = {
  name: 'A',
  host: 'a.example',
  description: 'd',
  enabled: true,
  base_path: '/b',
  path: '/p',
  method: 'GET',
  domain: '*',
  collection_id: null,
  code: 'fn main() {}',
  dependencies: {},
  service_type: 'redis',
  config: { host: 'h' },
  pool_id: 'p',
  message: 'm',
  percent: 50,
  version: 1,
  targets: [{ version: 1, percent: 100 }],
};

/** Declares the tests: each route gets so many requests. */
export function describeArbitraryInput(numRuns: number): void {
  describe('arbitrary input', () => {
    let api: TestApi;
    let ids: Readonly<Record<string, string>> = {};

    before(async () => {
      // With a key: without one, nothing would be open any more once a user is made.
      api = await startApi({ config: { API_KEY: KEY } });
      const create = async (path: string, body: object) =>
        expectData<{ id: string }>(await api.post(path, body, { headers: WITH_KEY }), 201).id;
      const domains = await create('/api/domains', { ...FINE, host: 'first.example' });
      ids = {
        domains,
        collections: await create('/api/collections', { ...FINE, domain_id: domains }),
        endpoints: await create('/api/endpoints', { ...FINE, path: '/first' }),
        services: await create('/api/services', { ...FINE, domain: undefined }),
      };
    });
    after(() => api.close());

    // Error lines in the log fail the suite as well, and so do answers that are not as described.
    for (const route of ROUTES.filter(({ body }) => body !== undefined)) {
      it(`${route.method} ${route.path} answers arbitrary bodies without an internal error`, async () => {
        const [, , resource = ''] = route.path.split('/');
        const path = route.path.replace(/\{\w+\}/g, ids[resource] ?? NO_ID);
        const fine: Record<string, unknown> = {
          ...FINE,
          domain_id: ids['domains'],
          service_id: ids['services'],
        };
        const properties = Object.keys(route.body?.properties ?? {});
        // Without any, members have any names.
        const names = properties.length > 0 ? properties : ['ANY_NAME', 'LD_PRELOAD'];
        const rest = properties.length > 0 ? fine : {};
        const wrong = fc
          .subarray(names, { minLength: 1, maxLength: Math.min(2, names.length) })
          .chain((chosen) => fc.record(Object.fromEntries(chosen.map((name) => [name, value]))));
        await fc.assert(
          fc.asyncProperty(wrong, async (fields) => {
            const { status } = await api.send(route.method, path, {
              headers: WITH_KEY,
              body: { ...rest, ...fields },
            });
            // There is no gateway that could deploy.
            if (status !== 503) expect(status).to.be.below(500);
          }),
          { numRuns },
        );
      });
    }

    it('GET /api/endpoints answers arbitrary queries without an internal error', async () => {
      const text = fc.string({ unit: 'grapheme' });
      await fc.assert(
        fc.asyncProperty(text, text, text, async (domain, collection, enabled) => {
          const query = new URLSearchParams({ domain, collection_id: collection, enabled });
          const { status } = await api.get(`/api/endpoints?${query.toString()}`, { headers: WITH_KEY });
          expect(status).not.to.equal(401);
          expect(status).to.be.below(500);
        }),
        { numRuns },
      );
    });

    it('GET /api/domains/{id} answers arbitrary paths without an internal error', async () => {
      await fc.assert(
        fc.asyncProperty(fc.stringMatching(/^[!-"$->@-~]{0,30}$/), async (path) => {
          const { status } = await api.get(`/api/domains/${path.replaceAll('\\', '')}`);
          expect(status).to.be.within(200, 499);
        }),
        { numRuns },
      );
    });
  });
}
