import { expect } from 'chai';
import fc from 'fast-check';
import { requestPathProblem as requestProblem } from '../../src/http/received-head.js';
import {
  basePathProblem,
  joinRoute,
  MAX_ROUTE_LENGTH,
  normalizeBasePath,
  parameterNames,
  parseRoute,
  RouteSyntaxError,
  routeBelow,
  routeKey,
  routePathProblem,
  type Segment,
  withoutBasePath,
} from '../../src/model/route-pattern.js';

const parameterName = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_.-]{0,8}$/);
const staticText = fc
  .string({ minLength: 1, maxLength: 10, unit: 'grapheme' })
  .filter((text) => !/(^|[/\\])\.{1,2}($|[/\\])/.test(text) && isWellFormed(text) && !/\p{Cc}/u.test(text));
/** Segments with no parameter name twice, as source text and as parsed. */
const segments = fc
  .array(
    fc.oneof(
      parameterName.map((name) => ({ source: `{${name}}`, parsed: { kind: 'param' as const, name } })),
      staticText.map((value) => ({
        source: sourceOfText(value),
        parsed: { kind: 'static' as const, value },
      })),
      fc.tuple(parameterName, parameterName, staticText, fc.boolean()).map(([one, other, text, isInner]) => ({
        source: isInner ? `{${one}}${sourceOfText(text)}{${other}}` : `{${one}}${sourceOfText(text)}`,
        parsed: {
          kind: 'mixed' as const,
          texts: isInner ? ['', text, ''] : ['', text],
          names: isInner ? [one, other] : [one],
        },
      })),
    ),
    { maxLength: 6 },
  )
  .filter((list) => {
    const names = list.flatMap(({ parsed }) => parameterNames(parsed));
    return new Set(names).size === names.length;
  });

function sourceOfText(text: string): string {
  return encodeURIComponent(text).replaceAll('*', '%2A');
}

function isWellFormed(text: string): boolean {
  try {
    encodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function sourceOf(list: readonly { readonly source: string }[]): string {
  return `/${list.map(({ source }) => source).join('/')}`;
}

describe('route patterns', () => {
  it('parses a route pattern into static segments and parameters', () => {
    expect(parseRoute('/').segments).to.deep.equal([]);
    expect(parseRoute('/a/{id}/b%2Fc/{x-y.z}/').segments).to.deep.equal([
      { kind: 'static', value: 'a' },
      { kind: 'param', name: 'id' },
      { kind: 'static', value: 'b/c' },
      { kind: 'param', name: 'x-y.z' },
    ]);
    expect(parseRoute('/items:batch/%7Bid%7D/%2A/a+b').segments).to.deep.equal([
      { kind: 'static', value: 'items:batch' },
      { kind: 'static', value: '{id}' },
      { kind: 'static', value: '*' },
      { kind: 'static', value: 'a+b' },
    ]);
  });

  it('accepts routes that mix text and parameters in a segment, or end with a catch-all', () => {
    expect(parseRoute('/r/{id}.json/v{major}.{minor}/%7B{x}:go/{*rest}').segments).to.deep.equal([
      { kind: 'static', value: 'r' },
      { kind: 'mixed', texts: ['', '.json'], names: ['id'] },
      { kind: 'mixed', texts: ['v', '.', ''], names: ['major', 'minor'] },
      { kind: 'mixed', texts: ['{', ':go'], names: ['x'] },
      { kind: 'catch-all', name: 'rest' },
    ]);
    expect(routeKey('/{a}.json/{*b}/')).to.equal(routeKey('/{x}%2Ejson/{*y}'));
    expect(routeKey('/{*b}')).to.not.equal(routeKey('/{b}'));
    for (const [path, problem] of [
      ['/{a}{b}', /must be text between two parameters/],
      ['/{a}.{a}', /the parameter \{a\} twice/],
      ['/{a}/{b}.{a}', /the parameter \{a\} twice/],
      ['/{*a}/b', /text after \{\*…\}/],
      ['/{*a}/{*b}', /text after \{\*…\}/],
      ['/a{*b}', /fills a whole segment/],
      ['/{*}', /a parameter named ""/],
      ['/{}.json', /a parameter named ""/],
      ['/{a', /braces do not match/],
      ['/a}.{b}', /braces do not match/],
      ['/{{a}}', /braces do not match/],
      ['/{a}.*', /\{\*name\} at the end/],
      ['/:a.{b}', /a parameter is written/],
      ['/{a}%2F../x', /no request with such a path/],
    ] as const)
      expect(routePathProblem(path), path).to.match(problem);
    expect(basePathProblem('a/{t}.x')).to.equal(undefined);
    expect(basePathProblem('/a/{*rest}')).to.match(/must not have \{\*…\}/);
  });

  it('parses any route pattern into the parts that it was composed of', () => {
    fc.assert(
      fc.property(segments, fc.boolean(), (list, slash) => {
        const source = sourceOf(list) + (slash && list.length > 0 ? '/' : '');
        expect(parseRoute(source).segments).to.deep.equal(list.map(({ parsed }) => parsed));
      }),
    );
  });

  it('gives routes the same key exactly when their segments are equal, parameter names aside', () => {
    const nameless = (list: readonly { readonly parsed: Segment }[]) =>
      JSON.stringify(list.map(({ parsed }) => ({ ...parsed, name: undefined, names: undefined })));
    fc.assert(
      fc.property(segments, segments, (one, other) => {
        const sameKey = routeKey(sourceOf(one)) === routeKey(sourceOf(other));
        expect(sameKey).to.equal(nameless(one) === nameless(other));
      }),
    );
    expect(routeKey('/caf%c3%a9')).to.equal(routeKey('/café'));
    expect(routeKey('/a%2Fb')).to.not.equal(routeKey('/a/b'));
    expect(routeKey('/%7B%7D')).to.not.equal(routeKey('/{x}'));
    expect(routeKey('/A')).to.not.equal(routeKey('/a'));
  });

  it('parses any text as a route, or throws a RouteSyntaxError', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.stringMatching(/^[/{}%.*:a-z?#]{0,20}$/),
      fc.stringMatching(/^(\/(a?(\{[a-d]\}(\.|:b)?){1,2}|\{\*c\}|%2f)){1,3}$/),
    );
    fc.assert(
      fc.property(text, (path) => {
        const problem = routePathProblem(path);
        if (problem === undefined) expect(routeKey(path)).to.match(/^\//);
        else expect(() => parseRoute(path)).to.throw(RouteSyntaxError, problem);
      }),
      { numRuns: 2000 },
    );
  });

  it('accepts only route paths that requests can have', () => {
    const pieces = [
      '/',
      '.',
      '..',
      '%2e',
      '%2F',
      '%2f',
      '%5C',
      '%5c',
      'a',
      ':',
      '%25',
      '%2a',
      'é',
      '%00',
      '\\',
    ];
    const text = fc.array(fc.constantFrom(...pieces), { maxLength: 8 }).map((list) => `/${list.join('')}`);
    fc.assert(
      fc.property(text, (path) => {
        if (routePathProblem(path) === undefined) expect(requestProblem(path)).to.equal(undefined);
      }),
      { numRuns: 5000 },
    );
    for (const path of ['/a%2f..', '/..%2Fa', '/a/%5c.', '/%2e%5C%2e/b', '/{x}/a%2F.%2Fb']) {
      expect(routePathProblem(path), path).to.match(/no request with such a path is taken/);
    }
    for (const path of ['/a%2f...', '/a%2F.b', '/a%5C..b/c', '/%2F', '/a%2F%2Fb'])
      expect(routePathProblem(path), path).to.equal(undefined);
  });

  it('limits the length of a route by the length of its key', () => {
    expect(routePathProblem(`/${'a'.repeat(MAX_ROUTE_LENGTH - 1)}`)).to.equal(undefined);
    expect(routePathProblem(`/${'a'.repeat(MAX_ROUTE_LENGTH)}`)).to.match(/at most/);
    expect(routePathProblem(`/${'✓'.repeat(MAX_ROUTE_LENGTH / 4)}`)).to.match(/at most/);
  });
});

describe('joining base path and path', () => {
  for (const [base, path, route] of [
    [null, '/a', '/a'],
    ['/shop', '/items/{id}', '/shop/items/{id}'],
    ['/shop', '/', '/shop/'],
    ['/shop', '/shop', '/shop'],
    ['/shop', '/shop/', '/shop/'],
    ['/shop', '/shop/items', '/shop/items'],
    ['/shop', '/shopping', '/shop/shopping'],
    ['/a/b', '/a', '/a/b/a'],
    ['/{t}', '/{t}/x', '/{t}/x'],
    ['/{t}', '/{u}/x', '/{t}/{u}/x'],
    ['/caf%C3%A9', '/café/x', '/café/x'],
  ] as const) {
    it(`joins the base path ${base} and the path ${path} to ${route}`, () => {
      expect(joinRoute(base, path)).to.equal(route);
    });
  }

  it('refuses a base path and a path that make no valid route', () => {
    expect(() => joinRoute('/{id}', '/x/{id}')).to.throw(RouteSyntaxError, /twice/);
    expect(() => joinRoute(`/${'a'.repeat(1500)}`, `/${'b'.repeat(1500)}`)).to.throw(
      RouteSyntaxError,
      /at most/,
    );
  });

  it('repeats the base path in a route below it when the path already begins with it', () => {
    expect(routeBelow('/v1', '/v1/x')).to.equal('/v1/v1/x');
    expect(routeBelow('/v1', '/x')).to.equal('/v1/x');
    expect(routeBelow(null, '/x')).to.equal('/x');
    expect(routeBelow('/', '/x')).to.equal('/x');
    expect(() => routeBelow('/v1', 'x')).to.throw(RouteSyntaxError, /must start with/);
    expect(() => routeBelow('/{id}', '/{id}')).to.throw(RouteSyntaxError, /twice/);
  });

  it('removes the base path from a route below it', () => {
    expect(withoutBasePath('/v1', '/v1/x')).to.equal('/x');
    expect(withoutBasePath('/v1', '/v1')).to.equal('/');
    expect(withoutBasePath('/v1', '/%761/x/')).to.equal('/x');
    expect(withoutBasePath('/v1', '/v10/x')).to.equal(undefined);
    expect(withoutBasePath(null, '/x')).to.equal('/x');
    fc.assert(
      fc.property(segments, segments, (base, path) => {
        const basePath = normalizeBasePath(sourceOf(base));
        const route = `${basePath ?? ''}${sourceOf(path)}`;
        fc.pre(routePathProblem(route) === undefined);
        expect(routeBelow(basePath, sourceOf(path))).to.equal(route);
        expect(routeKey(withoutBasePath(basePath, route) ?? '')).to.equal(routeKey(sourceOf(path)));
      }),
    );
  });

  it('changes nothing when it joins a base path to a route that has it already', () => {
    fc.assert(
      fc.property(segments, segments, (base, path) => {
        const basePath = normalizeBasePath(sourceOf(base));
        let route: string;
        try {
          route = joinRoute(basePath, sourceOf(path));
        } catch (thrown) {
          expect(thrown).to.be.instanceOf(RouteSyntaxError);
          return;
        }
        expect(joinRoute(basePath, route)).to.equal(route);
      }),
    );
  });
});
