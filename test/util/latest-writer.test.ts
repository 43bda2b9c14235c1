import { expect } from 'chai';
import { LatestWriter } from '../../src/util/latest-writer.js';

describe('latest writer', () => {
  let written: string[];
  let errors: string[];
  let failure: Error | undefined;
  let release: () => void;
  const writer = () =>
    new LatestWriter<string>(
      async (value) => {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
        if (failure) throw failure;
        written.push(value);
      },
      ({ message }) => errors.push(message),
    );
  beforeEach(() => {
    written = [];
    errors = [];
    failure = undefined;
  });

  it('writes one value at a time, and only the latest of the waiting ones', async () => {
    const values = writer();
    const first = values.write('a');
    void values.write('b');
    const last = values.write('c');
    release();
    await new Promise(setImmediate);
    expect(written).to.deep.equal(['a']);
    release();
    await Promise.all([first, last]);
    expect(written).to.deep.equal(['a', 'c']);
  });

  it('repeats a failed write once on request', async () => {
    const values = writer();
    failure = new Error('away');
    const first = values.write('a');
    release();
    await first;
    expect(errors).to.deep.equal(['away']);
    failure = undefined;
    const retried = values.retry();
    release();
    await retried;
    await values.retry();
    expect(written).to.deep.equal(['a']);
  });

  it('writes the latest value again, if there is one', async () => {
    const values = writer();
    await values.writeAgain();
    const first = values.write('a');
    release();
    await first;
    const again = values.writeAgain();
    release();
    await again;
    expect(written).to.deep.equal(['a', 'a']);
  });
});
