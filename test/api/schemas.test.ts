/** The schemas of routes are compiled by their first request, so none may wait for one to show a mistake. */
import { expect } from 'chai';
import { ROUTES } from '../../src/api/app.js';
import { checkOf, coercingCheckOf } from '../../src/model/schema-check.js';
import { SERVICE_CONFIGS } from '../../src/model/service-configs.js';

describe('schemas', () => {
  it('compiles the schemas of all routes', () => {
    for (const { method, path, params, query, body } of ROUTES) {
      const compile = () => {
        for (const schema of [params, query]) coercingCheckOf(schema)({});
        if (body) checkOf(body)({});
      };
      expect(compile, `${method} ${path}`).not.to.throw();
    }
  });

  it('compiles the schemas of all types of services', () => {
    for (const [type, schema] of Object.entries(SERVICE_CONFIGS))
      expect(() => checkOf(schema)({}), type).not.to.throw();
  });
});
