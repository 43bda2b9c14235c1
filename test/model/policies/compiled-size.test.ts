/** How much of a policy `validate` is compiled, however often its texts are used. */
import { expect } from 'chai';
import { problemOfPolicies } from '../../../src/model/policies/checks.js';
import type { ValidatePolicy } from '../../../src/model/policies/validate.js';
import { compiledText } from '../../../src/model/policies/validate-text.js';

const MB = 1024 * 1024;

/** An object with long names, which each of some parameters may be. */
function withNames(parameters: number, nameLength: number): ValidatePolicy {
  const names = Array.from({ length: 30 }, (_, at) => `${at}`.padEnd(nameLength, 'x'));
  const properties = Object.fromEntries(names.map((name) => [name, true]));
  return {
    mode: 'enforce',
    parameters: Array.from({ length: parameters }, (_, at) => ({
      in: 'query' as const,
      name: `p${at}`,
      schema: { $ref: '#/components/schemas/X' },
    })),
    components: { schemas: { X: { type: 'object', properties } } },
  };
}

/** A pattern that is translated into fifty times as many characters, in each of some schemas. */
function withPatterns(schemas: number): ValidatePolicy {
  const allOf = Array.from({ length: schemas }, () => ({ pattern: '\\s'.repeat(1_000) }));
  return { mode: 'enforce', parameters: [{ in: 'query', name: 'a', schema: { allOf } }] };
}

describe('what is compiled of a policy validate', () => {
  it('a policy whose names would be written for each of many parameters is refused, naming one of these', () => {
    expect(problemOfPolicies({ validate: withNames(500, 7_900) })).to.deep.equal([
      'validate.parameters.4.schema',
      'is one too many: the names of members have more than 1048576 bytes, each counted wherever a text may have it',
    ]);
    // Names are counted as JSON has them.
    expect(problemOfPolicies({ validate: withNames(4, 7_900) })).to.equal(undefined);
    const { components, ...others } = withNames(4, 7_900);
    const escaped = JSON.parse(JSON.stringify(components).replaceAll('x', '\\t'));
    expect(problemOfPolicies({ validate: { ...others, components: escaped } })?.[0]).to.equal(
      'validate.parameters.2.schema',
    );
  });

  it('a policy whose patterns become too long once they are translated is refused, naming one of these', () => {
    const [place, problem] = problemOfPolicies({ validate: withPatterns(120) }) ?? [];
    expect(place).to.match(/^validate\.parameters\.0\.schema\.allOf\.\d+\.pattern$/);
    expect(problem).to.match(/^the pattern ".*" is one too many: all together have more than 1048576 bytes/);
    expect(problemOfPolicies({ validate: withPatterns(5) })).to.equal(undefined);
  });

  it('of a stored policy that would become too large a gateway keeps only why it lets nobody in', () => {
    for (const policy of [withNames(500, 7_900), withPatterns(120)]) {
      const text = compiledText(JSON.stringify(policy)) ?? '';
      expect(text.length).to.be.below(4_000);
      expect(JSON.parse(text)).to.have.all.keys('unusable');
    }
  });

  it('the largest policies that are accepted become a few megabytes', () => {
    const text = compiledText(JSON.stringify(withNames(4, 7_900))) ?? '';
    expect(JSON.parse(text).parameters).to.have.length(4);
    expect(text.length).to.be.within(MB, 2 * MB);
  });

  it('a large object that people validate in each of many parameters is accepted', () => {
    expect(problemOfPolicies({ validate: withNames(200, 40) })).to.equal(undefined);
  });
});
