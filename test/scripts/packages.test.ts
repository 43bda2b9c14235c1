/** The packages of a first start, `npm ci --omit=dev`: the product is compiled with them alone. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';

describe('the packages of the product', () => {
  it('finds the types of the packages of the product among its own packages', async () => {
    const text = await readFile(new URL('../../../package.json', import.meta.url), 'utf8');
    const { dependencies, devDependencies } = JSON.parse(text) as Record<string, Record<string, string>>;
    const needed = Object.keys(dependencies ?? {});
    const missing = Object.keys(devDependencies ?? {}).filter((name) =>
      needed.includes(
        name
          .replace(/^@types\//, '')
          .replace('__', '/')
          .replace(/^(.+)\/(.+)$/, '@$1/$2'),
      ),
    );
    expect(needed).to.include('@types/pg-copy-streams');
    expect(missing.filter((name) => name.startsWith('@types/'))).to.deep.equal([]);
  });
});
