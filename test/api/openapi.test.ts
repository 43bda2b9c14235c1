import { validate } from '@readme/openapi-parser';
import { expect } from 'chai';
import fc from 'fast-check';
import { ROUTES } from '../../src/api/app.js';
import { FORMAT_KEYWORDS, FORMATS, NO_NAME_TWICE } from '../../src/model/formats.js';
import { startApi, type TestApi } from '../support/api.js';

interface Operation {
  readonly security?: readonly object[];
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: unknown;
  readonly responses: Readonly<Record<string, unknown>>;
}

interface Document {
  readonly security: readonly object[];
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

/** Every row of the contract that this API serves. */
const CONTRACT = [
  'GET /api/health',
  'GET /api/stats',
  'GET /api/domains',
  'POST /api/domains',
  'GET /api/domains/{id}',
  'PUT /api/domains/{id}',
  'DELETE /api/domains/{id}',
  'GET /api/domains/{id}/collections',
  'GET /api/collections',
  'POST /api/collections',
  'GET /api/collections/{id}',
  'PUT /api/collections/{id}',
  'DELETE /api/collections/{id}',
  'GET /api/collections/{id}/endpoints',
  'GET /api/endpoints',
  'POST /api/endpoints',
  'GET /api/endpoints/{id}',
  'PUT /api/endpoints/{id}',
  'DELETE /api/endpoints/{id}',
  'POST /api/endpoints/{id}/compile',
  'POST /api/endpoints/{id}/start',
  'POST /api/endpoints/{id}/stop',
  'POST /api/endpoints/{id}/services',
  'DELETE /api/endpoints/{endpoint_id}/services/{service_id}',
  'GET /api/services',
  'POST /api/services',
  'GET /api/services/{id}',
  'PUT /api/services/{id}',
  'DELETE /api/services/{id}',
  'POST /api/services/{id}/activate',
  'POST /api/services/{id}/deactivate',
  'POST /api/services/{id}/test',
  'GET /api/minio/objects',
  'POST /api/minio/objects',
  'GET /api/minio/objects/{key}',
  'DELETE /api/minio/objects/{key}',
  'POST /api/import/openapi',
  'POST /api/import/bundle',
];

describe('/api/openapi.json', () => {
  let api: TestApi;
  let document: Document;

  before(async () => {
    api = await startApi();
    const response = await api.get('/api/openapi.json');
    expect(response.status).to.equal(200);
    document = response.body as Document;
  });
  after(() => api.close());

  function operations(): [name: string, operation: Operation][] {
    return Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): [string, Operation] => [
        `${method.toUpperCase()} ${path}`,
        operation,
      ]),
    );
  }

  it('/api/openapi.json is valid OpenAPI 3.1', async () => {
    expect(document.openapi).to.match(/^3\.1\./);
    const result = await validate(structuredClone(document) as unknown as Parameters<typeof validate>[0]);
    expect(result.valid, JSON.stringify(result)).to.equal(true);
  });

  it('/api/openapi.json describes every route, and every row of the contract', () => {
    const described = operations().map(([name]) => name);
    const served = ROUTES.map(({ method, path }) => `${method} ${path.replace('...}', '}')}`);
    expect(described).to.have.members(served);
    expect(described).to.include.members(CONTRACT);
  });

  it('/api/openapi.json gives every operation a unique name', () => {
    const names = operations().map(([, { operationId }]) => operationId);
    expect(new Set(names).size).to.equal(names.length);
    for (const name of names) expect(name).to.match(/^[a-z][A-Za-z0-9]*$/);
  });

  it('/api/openapi.json describes every parameter in a path', () => {
    for (const [name, { parameters = [] }] of operations()) {
      const inPath = parameters
        .filter((parameter) => parameter.in === 'path')
        .map((parameter) => parameter.name);
      expect(inPath, name).to.have.members([...name.matchAll(/\{(\w+)\}/g)].map(([, key]) => key));
    }
  });

  it('/api/openapi.json describes the failures of every operation', () => {
    for (const [name, { responses, requestBody }] of operations()) {
      // 400 also without anything to send: for a request that cannot be taken as one.
      expect(responses, name).to.include.keys('400', '403', '500');
      if (name.includes('{')) expect(responses, name).to.include.keys('400', '404');
      if (requestBody && !name.includes('minio'))
        expect(responses, name).to.include.keys('400', '413', '415');
      // Whoever signs out, asks who they are, or begins to sign in elsewhere needs no credential.
      if (!/^(GET \/api\/health|(GET|DELETE) \/api\/session|GET \/api\/session\/oidc)$/.test(name))
        expect(responses, name).to.include.keys('401');
    }
  });

  it('/api/openapi.json requires the API key where it is needed', async () => {
    const isOpen = (doc: Document, path: string) =>
      (doc.paths[path]?.['get']?.security ?? doc.security).length === 0;
    expect(isOpen(document, '/api/stats')).to.equal(true);
    const guarded = await startApi({ config: { API_KEY: 'a-key' } });
    try {
      const headers = { authorization: 'Bearer a-key' };
      const described = (await guarded.get('/api/openapi.json', { headers })).body as Document;
      expect(isOpen(described, '/api/stats')).to.equal(false);
      expect(isOpen(described, '/api/health')).to.equal(true);
    } finally {
      await guarded.close();
    }
  });

  it('accepts values that match the patterns of its own formats in /api/openapi.json', () => {
    for (const [format, { pattern, maxLength = 60 }] of Object.entries(FORMAT_KEYWORDS)) {
      const problem = FORMATS[format];
      expect(problem, format).to.be.a('function');
      // It cannot generate texts for a lookahead.
      const withoutLookaheads = pattern
        .replace(NO_NAME_TWICE, '')
        .replaceAll(/\(\?!(?:[^()]|\([^()]*\))*\)/g, '');
      const generated = fc.stringMatching(new RegExp(withoutLookaheads, 'u'));
      fc.assert(
        fc.property(generated, (text) => {
          fc.pre(text.length <= Math.min(maxLength, 150) && new RegExp(pattern, 'u').test(text));
          expect(problem?.(text), JSON.stringify(text)).to.be.oneOf([
            undefined,
            'must not be listed: every handler has it already',
          ]);
        }),
        { numRuns: 200 },
      );
    }
  });

  it('/api/openapi.json has patterns of formats that exclude refused values', () => {
    for (const [format, texts] of Object.entries({
      line: ['', ' ', 'a\nb', 'a\u0000'],
      text: ['a\u0000b'],
      'hostname-or-any': ['', '**', 'a b', '-a', 'a..b', 'http://a'],
      'route-path': [
        '',
        'a',
        '/a//b',
        '/..',
        '/.',
        '/a b',
        '/{a',
        '/{a}{b}',
        '/{a}/x{a}',
        '/{a}/{*a}',
        '/a}b',
        '/{*a}/b',
        '/a{*b}',
        '/:a',
        '/*',
        '/a?b',
        '/%00',
        '/.%2e',
        '/a%2f..',
        '/%5C./b',
        '/%',
      ],
      'base-path': ['a//b', '/..', '/a b', '/*', 'a%2F..', '/a/{*b}', '{a}/b/{a}.c'],
      'pool-id': ['', 'a b', 'ü', 'x'.repeat(65)],
      'crate-name': ['', '1a', 'a.b'],
      feature: ['', '+a'],
      cidr: ['', '10.0.0.256', '10.0.0.0/33', '::/129', '10.0.0', 'a.test'],
      'cors-origin': [
        '',
        'a.test',
        'https://a.test/',
        'https://a.test/x',
        'ftp://a.test',
        'https://*.*.test',
      ],
      'web-url': ['', 'a.test', 'https://a.test/\r\nX: 1', 'https://a.test/a b', 'https://a.test/\u00fc'],
      'email-address': ['', 'a', 'a@', 'a b@c.test', 'a\u0001@c.test', '<a@c.test>'],
      'rate-limit-by': ['', 'Address', 'header:', 'header:a b'],
      'changeable-header': ['', 'a b', 'Host', 'transfer-encoding', 'X-REQUEST-ID'],
    })) {
      for (const text of texts) {
        expect(text, format).to.not.match(new RegExp(FORMAT_KEYWORDS[format]?.pattern ?? '', 'u'));
        expect(FORMATS[format]?.(text), `${format}: ${text}`).to.be.a('string');
      }
    }
  });
});
