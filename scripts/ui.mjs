/**
 * Bundles the web UI into ui/dist: hashed files, each also compressed, and the page that loads them. With `--watch` it
 * does so again with every change of the sources; reload the page then. Types are checked by `npm run check`.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { context } from 'esbuild';
import { ROOT } from './prepare.mjs';

const UI = join(ROOT, 'ui');
const OUT = join(UI, 'dist');
const ASSETS = join(OUT, 'assets');
const ENTRY = join(UI, 'src/main.tsx');
/** Where `web` serves them. */
const PUBLIC_PATH = '/ui/assets';
/** Smaller ones fit into one packet anyway. */
const COMPRESSED_FROM_BYTES = 1_024;

const { values } = parseArgs({ options: { watch: { type: 'boolean' } } });
const bundler = await context({
  entryPoints: { main: ENTRY, icon: join(UI, 'icon.svg') },
  bundle: true,
  splitting: true,
  format: 'esm',
  target: ['chrome120', 'firefox121', 'safari17'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  minify: !values.watch,
  sourcemap: values.watch ? 'inline' : false,
  legalComments: 'none',
  loader: { '.svg': 'copy' },
  entryNames: '[name]-[hash]',
  chunkNames: '[name]-[hash]',
  assetNames: '[name]-[hash]',
  publicPath: PUBLIC_PATH,
  outdir: ASSETS,
  metafile: true,
  logLevel: 'warning',
  plugins: [
    { name: 'one file for what every page has', setup: keepTogether },
    { name: 'finish', setup: (build) => build.onEnd(finish) },
  ],
});
if (values.watch) {
  await bundler.watch();
} else {
  await bundler.rebuild();
  await bundler.dispose();
}

/**
 * Makes each page import the application, which is there before any page: what it consists of is then in use by all
 * of them alike, and stays in one file. Otherwise each combination of pages that share a module has a file of its own.
 */
function keepTogether(build) {
  const pages = new Set();
  build.onResolve({ filter: /^\./ }, ({ kind, path, resolveDir }) => {
    // All of them are components.
    if (kind === 'dynamic-import') pages.add(join(resolveDir, path).replace(/\.js$/, '.tsx'));
    return undefined;
  });
  build.onLoad({ filter: /\.tsx$/ }, ({ path }) => {
    if (!pages.has(path)) return undefined;
    // The import is in the first line: the others keep their numbers.
    return { contents: `import ${JSON.stringify(ENTRY)}; ${readFileSync(path, 'utf8')}`, loader: 'tsx' };
  });
}

/** Removes what an earlier build has left, compresses, and writes the page. */
function finish({ errors, metafile }) {
  if (errors.length > 0 || !metafile) return;
  const outputs = Object.entries(metafile.outputs).map(([path, { imports }]) => ({
    file: fileOf(path),
    imports: imports.filter(({ kind }) => kind === 'import-statement').map((one) => fileOf(one.path)),
  }));
  for (const { file } of outputs) importTogether(file, outputs);
  const names = new Set(outputs.map(({ file }) => file));
  for (const file of readdirSync(ASSETS)) if (!names.has(file)) rmSync(join(ASSETS, file));
  if (!values.watch) for (const name of names) compress(join(ASSETS, name));

  const output = (pattern) => {
    const found = outputs.find(({ file }) => pattern.test(file));
    if (!found) throw new Error(`The bundle has no file like ${pattern}`);
    return found;
  };
  const asset = (pattern) => `${PUBLIC_PATH}/${output(pattern).file}`;
  // Otherwise the browser learns of them when it has read the script.
  const preloads = output(/^main-\w+\.js$/).imports.map(
    (file) => `<link rel="modulepreload" href="${PUBLIC_PATH}/${file}">`,
  );
  const page = readFileSync(join(UI, 'index.html'), 'utf8')
    .replace('%ICON%', asset(/^icon-\w+\.svg$/))
    .replace('%STYLES%', asset(/^main-\w+\.css$/))
    .replace('%SCRIPT%', asset(/^main-\w+\.js$/))
    .replace('%PRELOADS%', preloads.join('\n'));
  // The last step: a page that is there has all that it loads.
  writeFileSync(join(OUT, 'index.html'), page);
}

/**
 * Has a page that is loaded later come together with the files that it imports. Otherwise the browser learns of them
 * when it has read the page. Names stay as they are: they follow from the names of what is imported.
 */
function importTogether(file, outputs) {
  if (!file.endsWith('.js')) return;
  const importsOf = (name) => outputs.find((output) => output.file === name)?.imports ?? [];
  const known = new Set([file, ...importsOf(file)]);
  const path = join(ASSETS, file);
  const text = readFileSync(path, 'utf8').replaceAll(/\bimport\("[^"]*?([\w-]+\.js)"\)/g, (whole, page) => {
    const others = importsOf(page).filter((name) => !known.has(name));
    const imports = [whole, ...others.map((name) => `import("${PUBLIC_PATH}/${name}")`)];
    return others.length === 0 ? whole : `Promise.all([${imports}]).then(([page])=>page)`;
  });
  writeFileSync(path, text);
}

function fileOf(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

function compress(path) {
  if (!existsSync(path) || statSync(path).size < COMPRESSED_FROM_BYTES) return;
  const content = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${path}.br`, brotliCompressSync(content, { params }));
}
