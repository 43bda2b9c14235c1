/** A folder with something to be given to a program in a sandbox, something to work in, and something else. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TempDir, tempDir } from './temp.js';

export interface SandboxFolder extends TempDir {
  /** Empty. */
  readonly work: string;
}

/** Has `given/file` and `secret`, each with its own name as a line. */
export async function sandboxFolder(name: string): Promise<SandboxFolder> {
  const folder = await tempDir(name);
  const work = join(folder.path, 'work');
  await mkdir(work);
  await mkdir(join(folder.path, 'given'));
  await writeFile(join(folder.path, 'given', 'file'), 'given\n');
  await writeFile(join(folder.path, 'secret'), 'secret\n');
  return { ...folder, work };
}
