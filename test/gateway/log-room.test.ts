import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { LogRoom } from '../../src/gateway/log-room.js';
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
  const open = (filled: number, gateways = 1) => {
    const room = new LogRoom(10 * MEBIBYTE, createTestLog().log);
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
    const [one, other] = [randomUUID(), randomUUID()];
    const alone = admitted(open(0.6), one, 'info', 20_000);
    expect(admitted(open(0.6, 2), one, 'info', 20_000)).to.be.within(alone / 2 - 1, alone / 2);
    const room = open(0.6);
    room.admits(entry(other));
    expect(admitted(room, one, 'info', 20_000)).to.be.within(alone / 2 - 1, alone / 2);
  });

  it('admits only errors to a log that is nearly full, each endpoint up to its share, and then nothing', () => {
    expect(admitted(open(0.8), randomUUID(), 'info', 10)).to.equal(0);
    const room = open(0.8);
    const errors = admitted(room, randomUUID(), 'error', 20_000);
    expect(errors).to.be.within(1_000, 1_100);
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
