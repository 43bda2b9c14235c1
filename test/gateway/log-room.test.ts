import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { LogRoom } from '../../src/gateway/log/log-room.js';
import type { Level, LogEntry } from '../../src/model/log-entry.js';
import { createTestLog } from '../support/log.js';

const MEBIBYTE = 1024 * 1024;
const HOUR = 3_600_000;

describe('the room of an hour of the log', () => {
  const entry = (endpointId: string, level: Level = 'info'): LogEntry => ({
    ...{ at: 0, kind: 'output', level, endpointId, version: 1, requestId: null },
    ...{ message: 'x'.repeat(1_000), fields: null, request: null },
  });
  const admitted = (room: LogRoom, endpointId: string, level: Level, tries: number) =>
    Array.from({ length: tries }, () => room.admits(entry(endpointId, level))).filter(Boolean).length;
  /** The domain of an endpoint is what its id begins with, if it names one. */
  const domainOf = (endpointId: string) => endpointId.split(' ')[0] ?? '';
  const open = (filled: number, gateways = 1) => {
    const room = new LogRoom(10 * MEBIBYTE, createTestLog().log, domainOf);
    room.measured(HOUR, filled * 10 * MEBIBYTE, gateways);
    return room;
  };

  it('admits entries of all endpoints to the log until the room of the hour is half full', () => {
    const room = open(0);
    const [noisy, quiet] = [randomUUID(), randomUUID()];
    const taken = admitted(room, noisy, 'info', 20_000);
    expect(taken).to.be.within(4_300, 4_400);
    expect(admitted(room, quiet, 'info', 100)).to.equal(100);
    expect(admitted(room, noisy, 'warn', 100)).to.equal(0);
    expect(admitted(room, noisy, 'error', 100)).to.equal(100);
  });

  it('shares the room of the log among endpoints and gateways when it is more than half full', () => {
    const one = randomUUID();
    const alone = admitted(open(0.6), one, 'info', 20_000);
    expect(alone).to.be.above(700);
    expect(admitted(open(0.6, 2), one, 'info', 20_000)).to.be.within(alone / 2 - 1, alone / 2);
    const room = open(0.6);
    const turns = Array.from({ length: 2_000 }, () =>
      ['a 1', 'a 2', 'b 1'].map((id) => room.admits(entry(id))),
    );
    const counts = [0, 1, 2].map((place) => turns.filter((turn) => turn[place]).length);
    // Of 5 parts an endpoint alone would have a third; here each domain may have as much as is left to all others.
    for (const count of counts) expect(count).to.be.within(alone / 4, alone);
  });

  it('leaves room in a crowded log to whoever comes later, however many endpoints a domain has', () => {
    for (const level of ['info', 'error'] as const) {
      const room = open(0.5);
      const many = Array.from({ length: 200 }, (_, place) => admitted(room, `greedy ${place}`, level, 500));
      const greedy = many.reduce((sum, count) => sum + count, 0);
      // Half of the quarter of an hour that is in reserve.
      expect(greedy).to.be.below((0.125 * 10 * MEBIBYTE) / 1_200);
      const later = ['b', 'c', 'd'].map((domain) => admitted(room, `${domain} 1`, level, 50));
      expect(later).to.deep.equal([50, 50, 50]);
    }
  });

  it('lets other endpoints of a domain write to a crowded log when one has filled it', () => {
    const room = open(0);
    admitted(room, 'a 1', 'info', 20_000);
    expect(admitted(room, 'a 1', 'info', 10)).to.equal(0);
    expect(admitted(room, 'a 2', 'info', 100)).to.equal(100);
    expect(admitted(room, 'b 1', 'info', 100)).to.equal(100);
  });

  it('admits only errors to a log that is nearly full, each endpoint up to its share, and then nothing', () => {
    expect(admitted(open(0.8), randomUUID(), 'info', 10)).to.equal(0);
    const room = open(0.8);
    const errors = admitted(room, randomUUID(), 'error', 20_000);
    expect(errors).to.be.within(700, 750);
    expect(admitted(room, randomUUID(), 'error', 100)).to.equal(100);
    expect(admitted(open(1), randomUUID(), 'error', 1)).to.equal(0);
  });

  it('notes entries left out of the log at once, every minute, and when the hour is over', () => {
    const room = open(0.9);
    const id = randomUUID();
    const leftOut = (notes: readonly LogEntry[]) => notes.map(({ fields }) => fields?.['left_out']);
    admitted(room, id, 'info', 3);
    expect(leftOut(room.takeNotes(1_000))).to.deep.equal([3]);
    admitted(room, id, 'info', 2);
    expect(leftOut(room.takeNotes(2_000))).to.deep.equal([]);
    expect(leftOut(room.takeNotes(61_000))).to.deep.equal([2]);
    admitted(room, id, 'info', 4);
    expect(leftOut(room.measured(2 * HOUR, 0, 1))).to.deep.equal([4]);
    expect(leftOut(room.takeNotes(1_000_000))).to.deep.equal([]);
    expect(room.admits(entry(id))).to.equal(true);
  });
});
