import { expect } from 'chai';
import fc from 'fast-check';
import { type Lookup, type Route, RouteTable } from '../../src/gateway/route-table.js';

describe('route table', () => {
  const table = (routes: readonly (readonly [domain: string, method: string, route: string])[]) => {
    const made = new RouteTable<string>();
    for (const [domain, method, route] of routes)
      made.add({ domain, method, route }, `${domain} ${method} ${route}`);
    return made;
  };
  const target = (lookup: Lookup<string>) => (lookup.kind === 'found' ? lookup.target : lookup.kind);

  it('prefers exact hosts to *, and static segments to parameters', () => {
    const routes = table([
      ['*', 'GET', '/a/{x}'],
      ['*', 'GET', '/only'],
      ['h.test', 'GET', '/a/{x}'],
      ['h.test', 'GET', '/a/b'],
    ]);
    expect(target(routes.find('h.test', 'GET', '/a/b'))).to.equal('h.test GET /a/b');
    expect(target(routes.find('h.test', 'GET', '/a/c'))).to.equal('h.test GET /a/{x}');
    expect(target(routes.find('other.test', 'GET', '/a/b'))).to.equal('* GET /a/{x}');
    expect(target(routes.find('h.test', 'GET', '/only'))).to.equal('* GET /only');
    expect(target(routes.find('h.test', 'GET', '/none'))).to.equal('unknown');
  });

  it('does not let a route of another method hide a matching one', () => {
    const routes = table([
      ['h.test', 'POST', '/a/b'],
      ['h.test', 'GET', '/a/{x}'],
      ['*', 'DELETE', '/a/b'],
    ]);
    expect(routes.find('h.test', 'GET', '/a/b')).to.deep.equal({
      kind: 'found',
      target: 'h.test GET /a/{x}',
      params: { x: 'b' },
    });
    expect(target(routes.find('h.test', 'DELETE', '/a/b'))).to.equal('* DELETE /a/b');
    expect(routes.find('h.test', 'PUT', '/a/b')).to.deep.equal({
      kind: 'wrong-method',
      allow: ['DELETE', 'GET', 'HEAD', 'POST'],
    });
  });

  it('backtracks when a static branch does not match', () => {
    const routes = table([
      ['*', 'GET', '/a/b/c'],
      ['*', 'GET', '/a/{x}/d'],
      ['*', 'GET', '/{y}/b/e'],
    ]);
    expect(target(routes.find('x', 'GET', '/a/b/c'))).to.equal('* GET /a/b/c');
    expect(routes.find('x', 'GET', '/a/b/d')).to.deep.include({
      target: '* GET /a/{x}/d',
      params: { x: 'b' },
    });
    expect(routes.find('x', 'GET', '/a/b/e')).to.deep.include({
      target: '* GET /{y}/b/e',
      params: { y: 'a' },
    });
  });

  it('routes HEAD like GET', () => {
    expect(target(table([['*', 'GET', '/']]).find('x', 'HEAD', '/'))).to.equal('* GET /');
  });

  it('decodes segments after splitting the path', () => {
    const routes = table([
      ['*', 'GET', '/files/{name}'],
      ['*', 'GET', '/gr%C3%BC%C3%9Fe'],
    ]);
    expect(routes.find('x', 'GET', '/files/a%2Fb%20c')).to.deep.include({ params: { name: 'a/b c' } });
    expect(target(routes.find('x', 'GET', '/gr%c3%bc%c3%9fe'))).to.equal('* GET /gr%C3%BC%C3%9Fe');
    expect(routes.find('x', 'GET', '/files/%zz').kind).to.equal('malformed');
    expect(routes.find('x', 'GET', '/files/%ff').kind).to.equal('malformed');
  });

  it('ignores a trailing slash, and does not match a parameter with an empty segment', () => {
    const routes = table([['*', 'GET', '/items/{id}']]);
    expect(target(routes.find('x', 'GET', '/items/1/'))).to.equal('* GET /items/{id}');
    expect(target(routes.find('x', 'GET', '/items/'))).to.equal('unknown');
    expect(target(routes.find('x', 'GET', '/items//'))).to.equal('unknown');
    expect(target(routes.find('x', 'GET', '//items/1'))).to.equal('unknown');
  });

  it('removes a route only for its current target', () => {
    const routes = new RouteTable<string>();
    const route: Route = { domain: '*', method: 'GET', route: '/a' };
    routes.add(route, 'old');
    routes.add(route, 'new');
    routes.remove(route, 'old');
    expect(target(routes.find('x', 'GET', '/a'))).to.equal('new');
    routes.remove(route, 'new');
    expect(target(routes.find('x', 'GET', '/a'))).to.equal('unknown');
  });

  it('finds the same route as a linear search, after any additions and removals', () => {
    const segment = fc.constantFrom('a', 'b', '{x}', '{y}');
    const path = fc.array(segment, { maxLength: 3 }).map((segments) => `/${segments.join('/')}`);
    const route = fc.record({
      domain: fc.constantFrom('*', 'h.test'),
      method: fc.constantFrom('GET', 'POST'),
      route: path.filter(
        (text) => new Set(text.match(/\{.\}/g)).size === (text.match(/\{.\}/g) ?? []).length,
      ),
    });
    const change = fc.record({ remove: fc.boolean(), route });
    const wanted = fc.record({
      host: fc.constantFrom('h.test', 'other.test'),
      method: fc.constantFrom('GET', 'POST', 'HEAD', 'PUT'),
      // One of them with a slash in it, and some that end with a slash.
      path: fc
        .tuple(fc.array(fc.constantFrom('a', 'b', 'c', 'a%2Fb', '%61'), { maxLength: 3 }), fc.boolean())
        .map(([segments, slash]) => `/${segments.join('/')}${slash && segments.length > 0 ? '/' : ''}`),
    });
    fc.assert(
      fc.property(
        fc.array(change, { maxLength: 20 }),
        fc.array(wanted, { maxLength: 10 }),
        (changes, requests) => {
          const routes = new RouteTable<string>();
          const known = new Map<string, Route>();
          for (const { remove, route: changed } of changes) {
            const key = keyOf(changed);
            if (!remove) {
              known.set(key, changed);
              routes.add(changed, key);
            } else if (known.delete(key)) {
              routes.remove(changed, key);
            }
          }
          for (const { host, method, path: requested } of requests) {
            const found = routes.find(host, method, requested);
            expect(found, `${method} ${host}${requested}`).to.deep.equal(
              lookupIn([...known.values()], host, method, requested),
            );
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});

function keyOf({ domain, method, route }: Route): string {
  return `${domain} ${method} ${route.replace(/\{.\}/g, '{}')}`;
}

/** Reference implementation: exact hosts first, then the leftmost static segment wins. */
function lookupIn(routes: readonly Route[], host: string, method: string, path: string): Lookup<string> {
  const wanted = path
    .replace(/(.)\/$/, '$1')
    .split('/')
    .map(decodeURIComponent);
  const fitting = routes.filter(({ domain, route }) => {
    const segments = route.split('/');
    return (
      (domain === host || domain === '*') &&
      segments.length === wanted.length &&
      segments.every((segment, at) => (segment.startsWith('{') ? wanted[at] !== '' : segment === wanted[at]))
    );
  });
  const [best] = fitting
    .filter((route) => route.method === (method === 'HEAD' ? 'GET' : method))
    .sort((left, right) => (rankOf(left) < rankOf(right) ? -1 : 1));
  if (best) {
    const params = best.route
      .split('/')
      .flatMap((segment, at) => (segment.startsWith('{') ? [[segment.slice(1, -1), wanted[at]]] : []));
    return { kind: 'found', target: keyOf(best), params: Object.fromEntries(params) };
  }
  if (fitting.length === 0) return { kind: 'unknown' };
  const methods = new Set(
    fitting.flatMap((route) => (route.method === 'GET' ? ['GET', 'HEAD'] : route.method)),
  );
  return { kind: 'wrong-method', allow: [...methods].sort() };
}

function rankOf({ domain, route }: Route): string {
  const segments = route.split('/').map((segment) => (segment.startsWith('{') ? '1' : '0'));
  return (domain === '*' ? '1' : '0') + segments.join('');
}
