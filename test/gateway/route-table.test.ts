import { expect } from 'chai';
import fc from 'fast-check';
import { type Lookup, type Route, RouteTable } from '../../src/gateway/route-table.js';
import { routePathProblem } from '../../src/model/route-pattern.js';

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

  it('prefers mixed segments to parameters, those with the most text first', () => {
    const routes = table([
      ['*', 'GET', '/r/{id}'],
      ['*', 'GET', '/r/{id}.json'],
      ['*', 'GET', '/r/{name}.{ext}'],
      ['*', 'GET', '/r/v{x}'],
      ['*', 'GET', '/r/{id}:archive'],
      ['*', 'POST', '/r/{id}:publish'],
      ['*', 'GET', '/r/all.json'],
    ]);
    const found = (path: string) => {
      const lookup = routes.find('x', 'GET', path);
      return lookup.kind === 'found' ? [lookup.target.slice('* GET /r/'.length), lookup.params] : lookup.kind;
    };
    expect(found('/r/all.json')).to.deep.equal(['all.json', {}]);
    expect(found('/r/v1.json')).to.deep.equal(['{id}.json', { id: 'v1' }]);
    expect(found('/r/v1.yaml')).to.deep.equal(['v{x}', { x: '1.yaml' }]);
    expect(found('/r/a.tar.gz')).to.deep.equal(['{name}.{ext}', { name: 'a', ext: 'tar.gz' }]);
    expect(found('/r/7:archive')).to.deep.equal(['{id}:archive', { id: '7' }]);
    expect(found('/r/.json')).to.deep.equal(['{id}', { id: '.json' }]);
    expect(found('/r/v')).to.deep.equal(['{id}', { id: 'v' }]);
    expect(found('/r/a%2Fb.json')).to.deep.equal(['{id}.json', { id: 'a/b' }]);
    expect(found('/r/7:publish')).to.deep.equal(['{id}', { id: '7:publish' }]);
    expect(target(routes.find('x', 'POST', '/r/7:publish'))).to.equal('* POST /r/{id}:publish');
  });

  it('gives a catch-all the rest of a path when nothing else fits', () => {
    const routes = table([
      ['*', 'GET', '/files/{*path}'],
      ['*', 'GET', '/files/{name}/meta'],
      ['h.test', 'POST', '/{*all}'],
    ]);
    const rest = (path: string) => routes.find('x', 'GET', path);
    expect(rest('/files/a/b%2Fc//d/')).to.deep.include({ params: { path: 'a/b/c//d' } });
    expect(rest('/files/a')).to.deep.include({ params: { path: 'a' } });
    expect(rest('/files/a/meta')).to.deep.include({
      target: '* GET /files/{name}/meta',
      params: { name: 'a' },
    });
    expect(rest('/files/a/meta/b')).to.deep.include({ params: { path: 'a/meta/b' } });
    expect(target(rest('/files'))).to.equal('unknown');
    expect(target(rest('/files/'))).to.equal('unknown');
    expect(target(routes.find('h.test', 'GET', '/files/x'))).to.equal('* GET /files/{*path}');
    expect(routes.find('h.test', 'PUT', '/files/x')).to.deep.equal({
      kind: 'wrong-method',
      allow: ['GET', 'HEAD', 'POST'],
    });
    expect(target(routes.find('h.test', 'POST', '/'))).to.equal('unknown');
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
    const text = fc.constantFrom('a', 'b', '.', ':a', 'ab');
    const mixed = fc
      .tuple(fc.option(text, { nil: '' }), text, fc.option(text, { nil: '' }))
      .chain(([first, middle, last]) =>
        fc.constantFrom(`${first}{x}${middle}`, `${middle}{x}${last}`, `${first}{x}${middle}{y}${last}`),
      )
      .filter((segment) => routePathProblem(`/${segment}`) === undefined);
    const segment = fc.oneof(fc.constantFrom('a', 'b', '{x}', '{y}'), mixed);
    const path = fc
      .tuple(fc.array(segment, { maxLength: 3 }), fc.boolean())
      .map(([segments, hasRest]) => `/${[...segments, ...(hasRest ? ['{*r}'] : [])].join('/')}`);
    const route = fc.record({
      domain: fc.constantFrom('*', 'h.test'),
      method: fc.constantFrom('GET', 'POST'),
      route: path.filter((source) => routePathProblem(source) === undefined),
    });
    const change = fc.record({ remove: fc.boolean(), route });
    const wanted = fc.record({
      host: fc.constantFrom('h.test', 'other.test'),
      method: fc.constantFrom('GET', 'POST', 'HEAD', 'PUT'),
      // One of them with a slash in it, and some that end with a slash.
      path: fc
        .tuple(
          fc.array(fc.constantFrom('a', 'b', 'c', 'a%2Fb', '%61', 'a.b', 'bb:a', 'abab', ''), {
            maxLength: 4,
          }),
          fc.boolean(),
        )
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
      { numRuns: 2000 },
    );
  });
});

function keyOf({ domain, method, route }: Route): string {
  return `${domain} ${method} ${route.replace(/\{(\*?).\}/g, '{$1}')}`;
}

/** Reference implementation: all that fit, the best one by its rank. */
function lookupIn(routes: readonly Route[], host: string, method: string, path: string): Lookup<string> {
  const wanted = path
    .replace(/(.)\/$/, '$1')
    .slice(1)
    .split('/')
    .map(decodeURIComponent);
  const fitting = routes.filter(({ domain, route }) => {
    return (domain === host || domain === '*') && paramsOf(route, wanted) !== undefined;
  });
  const [best] = fitting
    .filter((route) => route.method === (method === 'HEAD' ? 'GET' : method))
    .sort((left, right) => (rankOf(left) < rankOf(right) ? -1 : 1));
  if (best) return { kind: 'found', target: keyOf(best), params: paramsOf(best.route, wanted) ?? {} };
  if (fitting.length === 0) return { kind: 'unknown' };
  const methods = new Set(
    fitting.flatMap((route) => (route.method === 'GET' ? ['GET', 'HEAD'] : route.method)),
  );
  return { kind: 'wrong-method', allow: [...methods].sort() };
}

/** The parameters that a route reads from the decoded segments of a path; undefined when it does not fit. */
function paramsOf(route: string, wanted: readonly string[]): Record<string, string> | undefined {
  const segments = route.slice(1).split('/');
  const rest = /^\{\*(.)\}$/.exec(segments.at(-1) ?? '')?.[1];
  if (rest === undefined && segments.length !== wanted.length) return undefined;
  const named = rest === undefined ? segments : segments.slice(0, -1);
  const params: Record<string, string> = {};
  for (const [at, segment] of named.entries()) {
    const groups = patternOf(segment).exec(wanted[at] ?? '');
    if (!groups) return undefined;
    Object.assign(params, groups.groups);
  }
  if (rest === undefined) return params;
  const first = wanted[named.length];
  if (first === undefined || first === '') return undefined;
  return { ...params, [rest]: wanted.slice(named.length).join('/') };
}

function patternOf(segment: string): RegExp {
  const source = segment
    .split(/(\{.\})/)
    .map((part, at) => (at % 2 === 1 ? `(?<${part[1]}>[^]+?)` : part.replace('.', '\\.')))
    .join('');
  return new RegExp(`^${source}$`);
}

function rankOf({ domain, route }: Route): string {
  const segments = route.slice(1).split('/').map(rankOfSegment);
  return (domain === '*' ? '1' : '0') + segments.join('');
}

function rankOfSegment(segment: string): string {
  if (segment.startsWith('{*')) return '3';
  const texts = segment.split(/\{.\}/);
  if (texts.length === 1) return '0';
  if (texts.join('') === '') return '2';
  const [first = ''] = texts;
  const least = (length: number) => String(99 - length);
  return `1${least(texts.join('').length)}${least(first.length)}${texts.join('{')}`;
}
