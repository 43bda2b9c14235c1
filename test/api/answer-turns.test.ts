/** Answers of several users that need something scarce, as transfers of object storages do. */
import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { AnswerTurns } from '../../src/api/response/answer-turns.js';
import { eventually } from '../support/eventually.js';

const PLACES = 16;
const newTransfers = () => new AnswerTurns({ what: 'transfers', places: PLACES, beyond: 8 });

describe('transfers of object storages', () => {
  it('a user has a transfer while another has as many slow downloads as there may be', async () => {
    const transfers = newTransfers();
    const begun: PassThrough[] = [];
    const download = (owner: string) =>
      transfers.run(
        owner,
        async () => {
          const content = new PassThrough();
          begun.push(content);
          return content;
        },
        (content) => content,
      );
    const slow = Array.from({ length: PLACES + 4 }, () => download('greedy'));
    await Promise.all(slow.slice(0, PLACES));
    expect(begun).to.have.length(PLACES);
    expect(await transfers.run('modest', async () => 'listed')).to.equal('listed');
    expect(begun).to.have.length(PLACES);
    // A client that leaves gives its place back, and so does one that has read all.
    begun[0]?.destroy();
    begun[1]?.end();
    begun[1]?.resume();
    await eventually(() => expect(begun).to.have.length(PLACES + 2));
    for (const content of begun) content.destroy();
    await eventually(() => expect(begun).to.have.length(PLACES + 4));
    for (const content of begun) content.destroy();
  });

  it('a transfer that fails says why, and gives its place back', async () => {
    const transfers = newTransfers();
    for (let count = 0; count <= PLACES; count++) {
      const failing = transfers.run('one', async () => {
        throw new Error('the storage is away');
      });
      expect(await failing.catch((thrown: Error) => thrown.message)).to.equal('the storage is away');
    }
  });
});
