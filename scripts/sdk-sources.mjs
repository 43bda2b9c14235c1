/**
 * Puts the sources of the SDK into dist/, from where `web`, which reads nothing else of a checkout, serves them as
 * crates. A build runs this.
 */
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './prepare.mjs';

const [SDK, COPY] = [join(ROOT, 'rust/sdk'), join(ROOT, 'dist/sdk')];
const PARTS = ['Cargo.toml', 'README.md', 'src', 'core/Cargo.toml', 'core/src'];

rmSync(COPY, { recursive: true, force: true });
for (const part of PARTS) cpSync(join(SDK, part), join(COPY, part), { recursive: true });
