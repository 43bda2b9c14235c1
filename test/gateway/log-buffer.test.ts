import { expect } from 'chai';
import { LogBuffer } from '../../src/gateway/log/log-buffer.js';
import type { Level, LogEntry } from '../../src/model/log-entry.js';

/** As many as there is room for, those that are not errors. */
const ROOM = 20_000;

describe('entries of the log that wait to be written', () => {
  const entry = (endpointId: string, message: string, level: Level = 'info'): LogEntry => ({
    ...{ at: 0, kind: 'output', level, endpointId, version: 1, requestId: null },
    ...{ message, fields: null, request: null },
  });
  const domainOf = (endpointId: string) => endpointId.split(' ')[0] ?? '';
  const add = (buffer: LogBuffer, endpointId: string, count: number, level?: Level) => {
    for (let number = 0; number < count; number++) buffer.add(entry(endpointId, `${number}`, level));
  };
  /** Those of each endpoint, and how many each has lost. */
  const takeAll = (buffer: LogBuffer) => {
    const kept: Record<string, number> = {};
    const lost: Record<string, number> = {};
    while (!buffer.isEmpty)
      for (const { endpointId, fields } of buffer.take(1_000))
        if (fields) lost[endpointId] = Number(fields['lost']);
        else kept[endpointId] = (kept[endpointId] ?? 0) + 1;
    return { kept, lost };
  };

  it('takes the oldest entries first, in the order in which they came', () => {
    const buffer = new LogBuffer(domainOf);
    const ids = ['a 1', 'b 1', 'a 1', 'a 2', 'b 1'];
    for (const [place, id] of ids.entries()) buffer.add(entry(id, `${place}`));
    const taken = [...buffer.take(2), ...buffer.take(10)];
    expect(taken.map(({ message }) => message)).to.deep.equal(['0', '1', '2', '3', '4']);
    expect(buffer.isEmpty).to.equal(true);
  });

  it('makes room for a domain that comes later, and loses the newest of the one that has most', () => {
    const buffer = new LogBuffer(domainOf);
    add(buffer, 'loud 1', ROOM + 10);
    add(buffer, 'quiet 1', 100);
    const taken = buffer.take(ROOM - 1);
    const quiet = taken.filter(({ endpointId }) => endpointId === 'quiet 1');
    const loud = taken.filter(({ endpointId }) => endpointId === 'loud 1');
    expect(quiet).to.have.length(99);
    expect(loud.map(({ message }) => Number(message))).to.deep.equal(
      Array.from({ length: ROOM - 100 }, (_, at) => at),
    );
    expect(takeAll(buffer)).to.deep.equal({ kept: { 'quiet 1': 1 }, lost: { 'loud 1': 110 } });
  });

  it('shares by domains what waits, however many endpoints one has', () => {
    const buffer = new LogBuffer(domainOf);
    for (let endpoint = 0; endpoint < 500; endpoint++) add(buffer, `loud ${endpoint}`, 60);
    add(buffer, 'other 1', 2 * ROOM);
    const { kept, lost } = takeAll(buffer);
    expect(kept['other 1']).to.equal(ROOM / 2);
    expect(lost['other 1']).to.equal(1.5 * ROOM);
    const all = Object.values(kept).reduce((sum, count) => sum + count, 0);
    expect(all).to.equal(ROOM);
    const gone = Object.values(lost).reduce((sum, count) => sum + count, 0);
    expect(all + gone).to.equal(500 * 60 + 2 * ROOM);
  });

  it('shares what a domain has by its endpoints', () => {
    const buffer = new LogBuffer(domainOf);
    add(buffer, 'a loud', ROOM);
    add(buffer, 'a quiet', 100);
    expect(takeAll(buffer)).to.deep.equal({
      kept: { 'a loud': ROOM - 100, 'a quiet': 100 },
      lost: { 'a loud': 100 },
    });
  });

  it('loses no error for other entries, and no other entry for errors', () => {
    const buffer = new LogBuffer(domainOf);
    add(buffer, 'loud 1', ROOM);
    add(buffer, 'loud 2', ROOM, 'error');
    add(buffer, 'quiet 1', 10, 'error');
    const { kept } = takeAll(buffer);
    expect(kept).to.deep.equal({ 'loud 1': ROOM, 'loud 2': ROOM / 2 - 10, 'quiet 1': 10 });
  });

  it('counts what is lost when entries come and go', () => {
    const buffer = new LogBuffer(domainOf);
    for (let round = 0; round < 20; round++) {
      add(buffer, 'a 1', ROOM / 4);
      add(buffer, 'b 1', 10);
      buffer.take(ROOM / 8);
    }
    const before = buffer.size;
    const { kept, lost } = takeAll(buffer);
    expect((kept['a 1'] ?? 0) + (kept['b 1'] ?? 0)).to.equal(before);
    expect(before + (lost['a 1'] ?? 0)).to.equal(20 * (ROOM / 4 + 10 - ROOM / 8));
  });
});
