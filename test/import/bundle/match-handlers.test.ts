/** Matching of handlers to operations by name. */
import { expect } from 'chai';
import fc from 'fast-check';
import { matchByName, normalizeName } from '../../../src/import/bundle/match-handlers.js';

/** Matches by name; the pairs are `operationId: file`. */
function match(operationIds: readonly (string | null)[], bases: readonly string[]) {
  const operations = operationIds.map((operationId, index) => ({
    operationId,
    name: operationId ?? `GET /${index}`,
  }));
  const handlers = bases.map((base) => ({ base, path: `handlers/${base}.rs` }));
  const { matched, problems, ambiguous } = matchByName(operations, handlers);
  return {
    pairs: Object.fromEntries([...matched].map(([{ name }, { base }]) => [name, base])),
    problems,
    ambiguous: [...ambiguous].map((each) => ('base' in each ? each.base : each.name)),
  };
}

describe('handlers matched to operations', () => {
  const one: [operationId: string, base: string][] = [
    ['listPets', 'list_pets'],
    ['list_pets', 'listPets'],
    ['list-pets', 'list_pets'],
    ['list-pets', 'listPets'],
    ['ListPets', 'list-pets'],
    ['getHTTPStatus', 'get_http_status'],
    ['get_http_status', 'getHttpStatus'],
    ['listUserIDs', 'list_user_ids'],
    ['getOAuthToken', 'get_oauth_token'],
    ['getOAuthToken', 'get_o_auth_token'],
    ['getV2Pets', 'get_v2_pets'],
    ['getV2Pets', 'get_v_2_pets'],
    ['oauth2Token', 'oauth2_token'],
    ['oauth2Token', 'oauth_2_token'],
    ['get2FACodes', 'get_2fa_codes'],
    ['get2FACodes', 'get2_fa_codes'],
    ['_health', 'health'],
    ['health', '_health'],
    ['__internal_ping', 'internal_ping'],
    ['repos/get', 'repos_get'],
    ['users.list', 'users_list'],
    ['issues/list-for-repo', 'issues_list_for_repo'],
    ['größeLesen', 'größe_lesen'],
    ['größe', 'gro\u0308ße'],
    ['列出宠物', '列出宠物'],
  ];
  for (const [operationId, base] of one) {
    it(`matches the operation ${operationId} to the handler ${base}.rs`, () => {
      expect(match([operationId], [base])).to.deep.equal({
        pairs: { [operationId]: base },
        problems: [],
        ambiguous: [],
      });
    });
  }

  it('matches no handler to an operation when letters or digits of their names differ', () => {
    for (const [operationId, base] of [
      ['listPets', 'list_pet'],
      ['getV2Pets', 'get_v3_pets'],
      ['getPets', 'get_p_ets2'],
      ['größe', 'grosse'],
    ] as const) {
      expect(match([operationId], [base]).pairs).to.deep.equal({});
    }
  });

  it('matches no handler to an operation without an operationId, or without letters and digits in it', () => {
    expect(match([null, '/', '__'], ['', '___', '-']).pairs).to.deep.equal({});
  });

  it('matches a handler by its exact name, even if that consists of separators', () => {
    expect(match(['__', '_'], ['_', '__']).pairs).to.deep.equal({ __: '__', _: '_' });
  });

  it('matches a handler by its exact name before a normalized one', () => {
    expect(match(['listPets'], ['list_pets', 'listPets']).pairs).to.deep.equal({ listPets: 'listPets' });
    expect(match(['listPets', 'list_pets'], ['list_pets']).pairs).to.deep.equal({ list_pets: 'list_pets' });
    expect(match(['listPets', 'list_pets'], ['list_pets', 'list-pets']).pairs).to.deep.equal({
      listPets: 'list-pets',
      list_pets: 'list_pets',
    });
  });

  it('reports two handlers for one operation and uses neither', () => {
    const { pairs, problems, ambiguous } = match(['listPets'], ['list_pets', 'list-pets', 'other']);
    expect(pairs).to.deep.equal({});
    expect(problems).to.have.length(1);
    expect(problems[0]).to.include({ name: 'listPets', handler: null });
    expect(problems[0]?.message).to.match(
      /^handlers\/list_pets\.rs or handlers\/list-pets\.rs could be the handler of listPets, so none was used/,
    );
    expect(ambiguous).to.have.members(['listPets', 'list_pets', 'list-pets']);
  });

  it('reports one handler for two operations, and uses it for neither', () => {
    const { pairs, problems, ambiguous } = match(['listPets', 'list-pets', 'other'], ['list_pets']);
    expect(pairs).to.deep.equal({});
    expect(problems).to.have.length(1);
    expect(problems[0]).to.include({ name: null, handler: 'handlers/list_pets.rs' });
    expect(problems[0]?.message).to.match(
      /^handlers\/list_pets\.rs could be the handler of listPets or list-pets,/,
    );
    expect(ambiguous).to.have.members(['listPets', 'list-pets', 'list_pets']);
  });

  it('reports nothing when several operations share a name that no handler has', () => {
    expect(match(['listPets', 'list-pets'], ['other'])).to.deep.equal({
      pairs: {},
      problems: [],
      ambiguous: [],
    });
  });

  describe('for arbitrary names', () => {
    /** Few letters, so that names collide, with separators, digits, an umlaut and others. */
    const name = fc.string({
      unit: fc.constantFrom('a', 'b', 'A', 'B', '1', '_', '-', '.', '/', 'ö', '😀'),
      maxLength: 6,
    });
    const names = fc.uniqueArray(name, { maxLength: 12 });

    it('uses each handler for one operation at most, and only where names are alike', () => {
      fc.assert(
        fc.property(names, names, (operationIds, bases) => {
          const { pairs } = match(operationIds, bases);
          const used = Object.values(pairs);
          expect(new Set(used).size).to.equal(used.length);
          for (const [operationId, base] of Object.entries(pairs)) {
            expect(normalizeName(base)).to.equal(normalizeName(operationId));
          }
        }),
      );
    });

    it('matches all handlers and operations that have exactly the same name', () => {
      fc.assert(
        fc.property(names, names, (operationIds, bases) => {
          const { pairs } = match(operationIds, bases);
          for (const both of operationIds.filter((id) => bases.includes(id)))
            expect(pairs[both]).to.equal(both);
        }),
      );
    });

    it('matches or reports every handler and operation with a common name', () => {
      fc.assert(
        fc.property(names, names, (operationIds, bases) => {
          const { pairs, ambiguous } = match(operationIds, bases);
          const freeIds = operationIds.filter((id) => !(id in pairs) && !ambiguous.includes(id));
          const freeNames = freeIds.map(normalizeName).filter((each) => each !== '');
          const used = Object.values(pairs);
          const freeBases = bases.filter((base) => !used.includes(base) && !ambiguous.includes(base));
          expect(freeBases.map(normalizeName).filter((base) => freeNames.includes(base))).to.deep.equal([]);
        }),
      );
    });

    it('matches handlers to operations in the same way in any order', () => {
      fc.assert(
        fc.property(names, names, (operationIds, bases) => {
          const there = match(operationIds, bases);
          const back = match(operationIds.toReversed(), bases.toReversed());
          expect(back.pairs).to.deep.equal(there.pairs);
          expect(new Set(back.ambiguous)).to.deep.equal(new Set(there.ambiguous));
        }),
      );
    });
  });
});
