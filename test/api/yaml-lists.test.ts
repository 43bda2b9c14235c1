/** YAML of exports: the same, whether it is written at once or in parts, and in threads. */
import { expect } from 'chai';
import fc from 'fast-check';
import { parse } from 'yaml';
import { YamlLists } from '../../src/api/apply/yaml-lists.js';
import { Threads } from '../../src/threads/threads.js';
import { yamlText } from '../../src/util/yaml-text.js';

/** Characters of JSON that are written at once; in the product they are more. */
const LONG = 200;

describe('YAML of lists of objects', () => {
  const threads = new Threads();
  const ran: string[] = [];
  const watched: Pick<Threads, 'run'> = {
    run: (owner, name, input) => {
      ran.push(`${name} of ${owner}`);
      return threads.run(owner, name, input);
    },
  };
  const yaml = new YamlLists(watched, 'ada', LONG);
  beforeEach(() => ran.splice(0));
  after(() => threads.close());

  const body = fc
    .tuple(
      fc.string({ unit: fc.constantFrom(...' \n\t\u2028\r"\'#:-ä😀\u0001x') }),
      fc.constantFrom('', 'word '.repeat(LONG / 5), '\n  a\n\n'.repeat(LONG / 7), ' \n'.repeat(LONG / 2)),
      fc.string({ unit: fc.constantFrom(...' \nx') }),
    )
    .map((parts) => parts.join(''));
  const schedule = fc.record({ cron: fc.constant('* * * * *'), body });
  const item = fc.record(
    {
      host: fc.constantFrom('a.example', '*'),
      description: body,
      policies: fc.record({ '<<': body, list: fc.array(body, { maxLength: 3 }) }),
      schedules: fc.array(schedule, { minLength: 1, maxLength: 4 }),
    },
    { requiredKeys: ['host'] },
  );

  it('is the text that it would be at once, whatever is large in it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(item, { minLength: 1, maxLength: 5 }), async (items) => {
        const text = (await yaml.write(items)).join('');
        expect(text).to.equal(yamlText(items));
        expect(parse(text)).to.deep.equal(items);
      }),
      { numRuns: 50 },
    );
  });

  it('is written in a thread where an object is large, each of its schedules by itself', async () => {
    const small = { host: 'a.example', schedules: [{ cron: '@daily' }] };
    await yaml.write(Array.from({ length: 100 }, () => small));
    expect(ran).to.deep.equal([]);
    const schedules = Array.from({ length: 3 }, () => ({ cron: '* * * * *', body: 'x'.repeat(LONG) }));
    const text = (await yaml.write([small, { host: 'b.example', schedules }, small])).join('');
    expect(ran).to.deep.equal(Array(3).fill('yamlList of ada'));
    expect(parse(text)).to.deep.equal([small, { host: 'b.example', schedules }, small]);
  });
});
