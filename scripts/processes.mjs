/**
 * Bundles each process with its packages into dist/processes: node loads a few files instead of a thousand, and starts
 * in a fraction of the time. The entries in dist/ load the bundles. Types are checked before, by the compiler.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { build } from 'esbuild';
import { ROOT } from './prepare.mjs';

const OUT = join(ROOT, 'dist', 'processes');
/** Programs that node runs, in the folders of sources and of dist/. */
const ENTRIES = [
  ...['web', 'gateway', 'actor-host', 'release', 'user'].map((name) => `src/processes/${name}`),
  'src/import/reader-process',
  'jobs/worker',
];
/** Alone in its folder, which is copied for users who cannot read this one (`src/bootstrap/service-program.ts`). */
const SERVICE = 'src/processes/service';
const SERVICE_OUT = join(OUT, 'service');
/** What cannot be included: machine code, packages that look for files beside them, and what is not installed. */
const EXTERNAL = [
  ...[
    '*.node',
    '@node-rs/argon2',
    '@bull-board/*',
    'cpu-features',
    'pg-native',
    'pg-query-stream',
    'piscina',
  ],
  ...['better-sqlite3', 'mariadb', 'mysql', 'oracledb', 'sqlite3', 'tedious', '@aws-sdk/client-s3'],
];
/** What packages of the older module system need. */
const BANNER = `import { createRequire as createRequireOfBundle } from 'node:module';
import { fileURLToPath as pathOfBundle } from 'node:url';
const require = createRequireOfBundle(import.meta.url);
const __filename = pathOfBundle(import.meta.url);
const __dirname = pathOfBundle(new URL('.', import.meta.url));
`;

/** The names of the files of the last build. */
const LIST = 'files.json';
/** Modules of the product. */
const OWN = /\/(src|jobs)\/.*\.ts$/;

await bundled(ENTRIES, OUT);
await bundled([SERVICE], SERVICE_OUT);
// Node looks for it beside a copy.
writeFileSync(join(SERVICE_OUT, 'package.json'), JSON.stringify({ type: 'module' }));
for (const entry of [...ENTRIES, SERVICE]) {
  const out = entry === SERVICE ? SERVICE_OUT : OUT;
  const bundle = relative(join(ROOT, 'dist', dirname(entry)), join(out, `${nameOf(entry)}.js`));
  writeFileSync(join(ROOT, 'dist', `${entry}.js`), `import '${bundle}';\n`);
}

async function bundled(entries, outdir) {
  removeOld(outdir);
  const { metafile } = await build({
    entryPoints: Object.fromEntries(entries.map((entry) => [nameOf(entry), join(ROOT, `${entry}.ts`)])),
    bundle: true,
    splitting: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    // A tenth less to read at each start. Names stay, for traces without source maps.
    minifyWhitespace: true,
    minifySyntax: true,
    external: EXTERNAL,
    banner: { js: BANNER },
    sourcemap: true,
    sourcesContent: false,
    metafile: true,
    outdir,
    logLevel: 'warning',
    plugins: [
      {
        name: 'own addresses',
        setup: (bundler) => bundler.onLoad({ filter: OWN }, ({ path }) => keepAddress(path, outdir)),
      },
    ],
  });
  const names = Object.keys(metafile.outputs).map((file) => basename(file));
  writeFileSync(join(outdir, LIST), JSON.stringify(names));
}

/** Keeps the files of the last build: processes that still run it load the rest of it when they need it. */
function removeOld(folder) {
  const list = join(folder, LIST);
  const last = existsSync(list) ? JSON.parse(readFileSync(list, 'utf8')) : [];
  mkdirSync(folder, { recursive: true });
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isFile() && !last.includes(entry.name)) rmSync(join(folder, entry.name));
}

function nameOf(entry) {
  return entry.slice(entry.lastIndexOf('/') + 1);
}

/** A module finds programs and files from where it is in dist/, whichever file it is bundled into. */
function keepAddress(path, outdir) {
  const address = relative(outdir, join(ROOT, 'dist', relative(ROOT, path))).replace(/\.ts$/, '.js');
  const contents = readFileSync(path, 'utf8');
  return {
    contents: contents.replaceAll('import.meta.url', `new URL('${address}', import.meta.url).href`),
    loader: 'ts',
  };
}
