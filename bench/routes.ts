/** What do lookups and changes of the front's route table cost? Measured by a program beside it. */
import { execa } from 'execa';
import { type Benchmark, runAlone } from './support/main.js';
import type { Row } from './support/report.js';

const CARGO = ['bench', '--locked', '--quiet', '-p', 'edge-front', '--bench', 'routes'];

export const routes: Benchmark = async () => {
  const { stdout } = await execa('cargo', CARGO, { cwd: 'rust' });
  return stdout.split('\n').map((line) => JSON.parse(line) as Row);
};

await runAlone(import.meta.url, routes);
