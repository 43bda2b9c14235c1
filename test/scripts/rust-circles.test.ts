import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type TempDir, tempDir } from '../support/temp.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

type Uses = ReadonlyMap<string, ReadonlySet<string>>;

interface RustCircles {
  readCrate(folder: string): unknown;
  usesOfFiles(crate: unknown): Uses;
  largestCircle(uses: Uses): string[];
  layerProblems(folder: string, uses: Uses, layers: readonly (readonly string[])[]): string[];
}

const FILES = {
  'lib.rs': 'pub mod head;\npub mod http;\nmod clock;\n',
  'clock.rs': 'pub fn now() -> u64 { 0 }\n',
  'head.rs': 'use crate::http::Exchange;\npub struct Head(pub Exchange);\n',
  // A re-export is followed to the file that defines the name.
  'http/mod.rs': 'mod exchange;\npub use exchange::Exchange;\n',
  'http/exchange.rs':
    'use super::reply::{self, Reply};\npub struct Exchange;\npub fn f() { reply::g(); let _: Option<Reply> = None; }\n' +
    '#[cfg(test)]\nmod tests {\n    use crate::clock::now;\n}\n',
  'http/reply.rs': 'pub struct Reply;\npub fn g() { let _ = crate::head::Head; }\n',
};

describe('circles of files in Rust', () => {
  let circles: RustCircles;
  let folder: TempDir;
  let uses: Uses;

  before(async () => {
    circles = (await import(join(ROOT, 'scripts', 'rust-circles.mjs'))) as RustCircles;
    folder = await tempDir('circles');
    for (const [path, text] of Object.entries(FILES)) {
      await mkdir(dirname(join(folder.path, path)), { recursive: true });
      await writeFile(join(folder.path, path), text);
    }
    uses = circles.usesOfFiles(circles.readCrate(folder.path));
  });
  after(() => folder?.remove());

  it('finds the files that use each other in a circle, also by a re-export and by paths in the code', () => {
    expect(circles.largestCircle(uses)).to.deep.equal(['head.rs', 'http/exchange.rs', 'http/reply.rs']);
  });

  it('does not count what only tests use', () => {
    expect([...(uses.get('http/exchange.rs') ?? [])]).not.to.include('clock.rs');
  });

  it('names each file that uses one of a layer above its own, and files in no layer', () => {
    const layers = [['http'], ['head', 'lib']];
    expect(circles.layerProblems('rust/x/src', uses, layers)).to.have.members([
      '  rust/x/src/clock.rs is in no layer',
      '  rust/x/src/http/reply.rs uses head.rs, which is in a layer above it',
    ]);
  });
});
