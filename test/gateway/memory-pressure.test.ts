/** Which handlers are ended when memory is scarce, and what is read of it. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  cgroupMemory,
  cgroupsMemory,
  machineMemory,
  readMemory,
} from '../../src/gateway/sleep/machine-memory.js';
import { handlersToEnd, isScarce } from '../../src/gateway/sleep/memory-pressure.js';
import { tempDir } from '../support/temp.js';

const MEMINFO = `MemTotal:       24683944 kB
MemFree:        15145984 kB
MemAvailable:   22109184 kB
Buffers:          123456 kB
`;
const handlers = (...idle: readonly (readonly [string, number, number])[]) =>
  idle.map(([endpointId, seconds, bytes]) => ({ endpointId, idleMs: seconds * 1_000, bytes }));
const named = (...given: Parameters<typeof handlersToEnd>) =>
  handlersToEnd(...given).map(({ endpointId }) => endpointId);

describe('memory pressure', () => {
  const idle = handlers(['a', 60, 10], ['b', 600, 10], ['c', 0.5, 10], ['d', 300, 10]);

  it('ends no handler while there is enough memory', () => {
    expect(isScarce({ total: 1_000, available: 80 })).to.equal(false);
    expect(named([{ total: 1_000, available: 80 }], idle)).to.deep.equal([]);
    expect(named([], idle)).to.deep.equal([]);
  });

  it('ends the longest idle handlers, as many as have the memory that is missing', () => {
    expect(named([{ total: 1_000, available: 79 }], handlers(['a', 60, 50], ['b', 600, 0]))).to.deep.equal([
      'b',
      'a',
    ]);
    expect(named([{ total: 100, available: 7 }], idle)).to.deep.equal(['b']);
    expect(named([{ total: 200, available: 10 }], idle)).to.deep.equal(['b', 'd']);
  });

  it('ends no handler that has just had a request when memory is scarce', () => {
    expect(named([{ total: 1_000, available: 0 }], idle)).to.deep.equal(['b', 'd', 'a']);
  });

  it('ends handlers for the machine or the cgroup that has the least memory', () => {
    const [plenty, scarce] = [
      { total: 10_000, available: 9_000 },
      { total: 200, available: 10 },
    ];
    expect(named([plenty, scarce], idle)).to.deep.equal(['b', 'd']);
  });

  it('reads the total and the available memory of the machine', async () => {
    expect(machineMemory(MEMINFO)).to.deep.equal({ total: 24683944 * 1024, available: 22109184 * 1024 });
    expect(machineMemory('MemTotal: 1 kB\n')).to.equal(undefined);
    const [machine] = await readMemory();
    expect(machine?.total).to.be.greaterThan(machine?.available ?? Infinity);
  });

  it('reads the memory of a cgroup with a limit, where files that can be dropped are available', () => {
    expect(cgroupMemory('max\n', '100\n', '')).to.equal(undefined);
    expect(cgroupMemory('', '', '')).to.equal(undefined);
    const stat = 'anon 300\nshmem 250\nactive_file 100\ninactive_file 200\n';
    expect(cgroupMemory('1000\n', '900\n', stat)).to.deep.equal({ total: 1_000, available: 400 });
    const unwritten = `${stat}file_dirty 60\nfile_writeback 40\n`;
    expect(cgroupMemory('1000\n', '900\n', unwritten)).to.deep.equal({ total: 1_000, available: 300 });
    expect(cgroupMemory('1000\n', '1100\n', 'anon 1100\n')).to.deep.equal({ total: 1_000, available: 0 });
  });

  it('counts the file cache of a cgroup above the process as available', async () => {
    const folder = await tempDir('cgroups');
    try {
      const limited = join(folder.path, 'service');
      await mkdir(join(limited, 'gateway'), { recursive: true });
      await writeFile(join(limited, 'memory.max'), '1000\n');
      await writeFile(join(limited, 'memory.current'), '990\n');
      const stat = 'anon 40\nfile 950\ninactive_file 50\nactive_file 900\nfile_dirty 0\nfile_writeback 0\n';
      await writeFile(join(limited, 'memory.stat'), stat);
      await writeFile(join(limited, 'gateway', 'memory.max'), 'max\n');
      const memory = await cgroupsMemory(folder.path, '1:name=systemd:/\n0::/service/gateway\n');
      expect(memory).to.deep.equal([{ total: 1_000, available: 960 }]);
      expect(memory.some(isScarce)).to.equal(false);
    } finally {
      await folder.remove();
    }
  });
});
