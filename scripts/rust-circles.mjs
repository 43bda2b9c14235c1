/**
 * Circles and layers among the files of a crate in Rust: which file uses which, by `use` and by paths in the code, with
 * re-exports followed to the file that defines the name. A table says how many files of a crate may be in one circle: a
 * file in it can be understood only with all the others. Another one has the layers of a crate, lowest first: no file
 * uses one of a layer above its own. `npm run check` runs this. Modules of tests do not count.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fail, ROOT } from './prepare.mjs';

/** The sources of a crate, and how many files its largest circle may have. Other crates may have none. */
const LARGEST = {
  'rust/front/src': 4,
  'rust/launcher/src': 3,
  'rust/postgres-service/src': 2,
  'rust/sdk/core/src': 2,
  'rust/service/src': 2,
  'rust/sqlite-service/src': 2,
};
/** Files, or folders, of each layer. Of several that fit, the longest counts. */
const LAYERS = {
  'rust/front/src': [
    [
      ...['client_ip', 'challenges', 'dates', 'durations', 'memory', 'routes', 'scratch', 'tls', 'workers'],
      ...['policies/compiled', 'policies/origins'],
    ],
    ['messages'],
    ['figures', 'guard', 'request', 'supervisor'],
    ['policies'],
    ['endpoint_state'],
    ['upstream'],
    ['thread'],
    ['entries', 'intervals'],
    ['http'],
    ['internal'],
    ['event_loop'],
    ['accept', 'control'],
    ['fuzzing', 'lib', 'main'],
  ],
  'rust/sdk/core/src': [
    ['wire', 'runtime/current', 'runtime/in_request', 'runtime/poll', 'runtime/threads', 'runtime/vectored'],
    ['runtime/records'],
    ['response'],
    ['error'],
    ['json_bridge', 'multipart', 'pairs', 'values'],
    ['request'],
    ['wire/head'],
    [
      ...['runtime/bodies', 'runtime/gateway_connection', 'runtime/outgoing', 'runtime/process'],
      ...['runtime/shared_memory', 'runtime/streams'],
    ],
    ['runtime/latency', 'runtime/monitor', 'runtime/pool', 'runtime/workers'],
    ['services'],
    [
      ...['runtime/asynchronous/body_writer', 'runtime/asynchronous/connection', 'runtime/body_source'],
      ...['runtime/waiting', 'websocket/message'],
    ],
    ['sse', 'stream', 'stream_request'],
    [
      ...['runtime/answer', 'runtime/input', 'runtime/panics', 'runtime/socket_line', 'runtime/streaming'],
      'runtime/asynchronous/stream',
    ],
    ['websocket'],
    ['runtime'],
    ['ipc', 'lib', 'macros'],
  ],
};
const NAME = '[A-Za-z_][A-Za-z0-9_]*';
const ITEM = new RegExp(
  `\\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\\s+(?:mut\\s+)?(${NAME})`,
  'g',
);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = crates(ROOT).flatMap((folder) => {
    const uses = usesOfFiles(readCrate(join(ROOT, folder)));
    const circle = largestCircle(uses);
    process.stdout.write(`${folder}: ${circle.length} of ${uses.size} files\n`);
    return [...circleProblems(folder, circle), ...layerProblems(folder, uses)];
  });
  if (problems.length > 0) fail(`Against the tables of scripts/rust-circles.mjs:\n${problems.join('\n')}`);
}

function circleProblems(folder, circle, largest = LARGEST[folder] ?? 1) {
  return circle.length > largest
    ? [`  ${folder}: ${circle.length} files use each other, ${largest} may: ${circle.join(', ')}`]
    : [];
}

/** Files that use one of a layer above their own, or have none, a line each. */
export function layerProblems(folder, uses, layers = LAYERS[folder]) {
  if (!layers) return [];
  return [...uses].flatMap(([file, used]) => {
    const own = layerOf(file, layers);
    if (own === -1) return [`  ${folder}/${file} is in no layer`];
    return [...used]
      .filter((other) => layerOf(other, layers) > own)
      .map((other) => `  ${folder}/${file} uses ${other}, which is in a layer above it`);
  });
}

/** The number of the layer that names a file, or a folder of it; -1 for none. */
function layerOf(file, layers) {
  const path = file.replace(/\.rs$/, '');
  const fits = (name) => path === name || path.startsWith(`${name}/`);
  const [longest] = layers
    .flat()
    .filter(fits)
    .sort((one, other) => other.length - one.length);
  return layers.findIndex((names) => names.includes(longest));
}

/** The folders of sources below `rust`. */
function crates(root) {
  return ['rust', 'rust/sdk']
    .flatMap((folder) => [folder, ...readdirSync(join(root, folder)).map((name) => join(folder, name))])
    .filter((folder) => existsSync(join(root, folder, 'Cargo.toml')) && existsSync(join(root, folder, 'src')))
    .map((folder) => join(folder, 'src'))
    .filter((folder, at, all) => all.indexOf(folder) === at)
    .sort();
}

/** The files of the largest circle. */
export function largestCircle(uses) {
  const circles = stronglyConnected(uses).sort((one, other) => other.length - one.length);
  return (circles[0] ?? []).sort();
}

/** The modules of a crate, by path: `http::head`. Its root is ''. */
export function readCrate(folder) {
  const modules = new Map();
  for (const file of readdirSync(folder, { recursive: true }).sort()) {
    if (!file.endsWith('.rs') || /(?:^|[/_])tests\.rs$/.test(file)) continue;
    const path = file
      .replace(/\.rs$/, '')
      .replace(/(?:^|\/)(?:mod|lib|main)$/, '')
      .replaceAll('/', '::');
    if (path === '' && file === 'main.rs' && existsSync(join(folder, 'lib.rs'))) continue;
    addModule(modules, path, file, withoutTests(codeOf(readFileSync(join(folder, file), 'utf8'))));
  }
  return modules;
}

/** Adds a module, and those that are written inside it. */
function addModule(modules, path, file, code) {
  const { own, inner } = splitInner(code);
  const items = new Set([...own.matchAll(ITEM)].map(([, name]) => name));
  const uses = [...own.matchAll(/\buse\s+([^;]+);/g)].flatMap(([, tree]) => leavesOf(tree));
  const paths = [
    ...new Set(
      [
        ...own
          .replace(/\buse\s+[^;]+;/g, ' ')
          .matchAll(new RegExp(`(?<![:\\w])${NAME}(?:\\s*::\\s*${NAME})+`, 'g')),
      ].map(([found]) => found.replace(/\s/g, '')),
    ),
  ].map((found) => found.split('::'));
  modules.set(path, { path, file, items, uses, paths });
  for (const [name, body] of inner) addModule(modules, child(path, name), file, body);
}

/** The code of a module without the modules written in it, and those. */
function splitInner(code) {
  const inner = [];
  let own = code;
  for (;;) {
    const found = new RegExp(`\\bmod\\s+(${NAME})\\s*\\{`).exec(own);
    if (!found) return { own, inner };
    const start = found.index + found[0].length;
    const end = closing(own, start - 1);
    inner.push([found[1], own.slice(start, end)]);
    own = own.slice(0, found.index) + own.slice(end + 1);
  }
}

/** The names that a tree of `use` brings: `a::{b, c as d, e::*}`. */
function leavesOf(tree, before = []) {
  const text = tree.trim();
  const open = text.indexOf('{');
  if (open === -1) {
    const [path, alias] = text.split(/\s+as\s+/);
    const segments = [...before, ...segmentsOf(path)];
    const isSelf = segments.length > 1 && segments.at(-1) === 'self';
    const target = isSelf ? segments.slice(0, -1) : segments;
    return [{ target, name: alias?.trim() ?? target.at(-1) }];
  }
  const start = [...before, ...segmentsOf(text.slice(0, open))];
  return partsOf(text.slice(open + 1, closing(text, open))).flatMap((part) => leavesOf(part, start));
}

function segmentsOf(path) {
  return path
    .split('::')
    .map((segment) => segment.trim())
    .filter((segment) => segment !== '');
}

/** What commas separate, but for those in braces. */
function partsOf(text) {
  const parts = [''];
  let depth = 0;
  for (const character of text) {
    if (character === '{') depth += 1;
    if (character === '}') depth -= 1;
    if (character === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.filter((part) => part.trim() !== '');
}

/** Where the brace at an offset ends. */
function closing(text, open) {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

/** A source without comments and literals. */
function codeOf(source) {
  const literal =
    /\/\/[^\n]*|\/\*[\s\S]*?\*\/|b?r(#*)"[\s\S]*?"\1|[bc]?"(?:\\[\s\S]|[^"\\])*"|b?'(?:\\(?:x[0-9a-fA-F]{2}|u\{[^}]*\}|.)|[^'\\])'/g;
  return source.replace(literal, (found) => (found.startsWith('/') ? ' ' : '0'));
}

/** Code without the items that only tests have. */
function withoutTests(code) {
  const attribute =
    /#\[cfg\((?:test|all\(test[^\]]*)\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?([a-z]+)/;
  let rest = code;
  let kept = '';
  for (;;) {
    const found = attribute.exec(rest);
    if (!found) return kept + rest;
    const start = found.index + found[0].length;
    kept += rest.slice(0, found.index);
    const isItem = [
      'use',
      'mod',
      'fn',
      'impl',
      'struct',
      'enum',
      'const',
      'static',
      'type',
      'trait',
    ].includes(found[1]);
    rest = rest.slice(isItem ? endOfItem(rest, start, found[1] === 'use') : start);
  }
}

function endOfItem(code, start, isUse) {
  const semicolon = code.indexOf(';', start);
  const brace = code.indexOf('{', start);
  return isUse || brace === -1 || (semicolon !== -1 && semicolon < brace)
    ? semicolon + 1
    : closing(code, brace) + 1;
}

/** Which files each file uses. */
export function usesOfFiles(modules) {
  const uses = new Map([...modules.values()].map(({ file }) => [file, new Set()]));
  for (const module of modules.values()) {
    const targets = [...module.uses.map(({ target }) => target), ...module.paths];
    for (const target of targets) {
      const found = resolve(modules, module, target, new Set());
      if (found?.isItem && found.module.file !== module.file) uses.get(module.file).add(found.module.file);
    }
  }
  return uses;
}

/** What a path means in a module: a module, or an item of one; undefined for what is not of this crate. */
function resolve(modules, from, segments, seen) {
  const [first, ...rest] = segments;
  if (first === 'crate') return walk(modules, modules.get(''), rest, seen);
  if (first === 'self') return walk(modules, from, rest, seen);
  if (first === 'super') return walk(modules, modules.get(parentOf(from.path)), rest, seen);
  const start = lookUp(modules, from, first, seen);
  // An item that the module has itself, or that a `use` brings, counts there.
  return start && !start.isItem ? walk(modules, start.module, rest, seen) : start;
}

function walk(modules, start, segments, seen) {
  let module = start;
  for (const segment of segments) {
    if (!module) return undefined;
    if (segment === '*') return { module, isItem: true };
    if (segment === 'super') {
      module = modules.get(parentOf(module.path));
      continue;
    }
    const found = lookUp(modules, module, segment, seen) ?? exported(modules, segment, module);
    if (found.isItem) return found;
    module = found.module;
  }
  return module && { module, isItem: false };
}

/** What a name means in a module: its child, its item, or what it imports. */
function lookUp(modules, module, name, seen) {
  const inner = modules.get(child(module.path, name));
  if (inner) return { module: inner, isItem: false };
  if (module.items.has(name)) return { module, isItem: true };
  const mark = `${module.path} ${name}`;
  if (seen.has(mark)) return undefined;
  seen.add(mark);
  for (const use of module.uses) {
    if (use.name === name && !(use.target.length === 1 && use.target[0] === name)) {
      return resolve(modules, module, use.target, seen);
    }
  }
  for (const { target, name: last } of module.uses) {
    if (last !== '*') continue;
    const all = resolve(modules, module, target.slice(0, -1), seen);
    const found = all && !all.isItem && all.module !== module && lookUp(modules, all.module, name, seen);
    if (found) return found;
  }
  return undefined;
}

/** A name that a module does not define in a way that is seen here: a macro of the crate, or what a macro makes. */
function exported(modules, name, module) {
  if (module.path === '') {
    const owner = [...modules.values()].find(({ items }) => items.has(name));
    if (owner) return { module: owner, isItem: true };
  }
  return { module, isItem: true };
}

function child(path, name) {
  return path === '' ? name : `${path}::${name}`;
}

function parentOf(path) {
  return path.includes('::') ? dirname(path.replaceAll('::', '/')).replaceAll('/', '::') : '';
}

/** Tarjan's strongly connected components. */
function stronglyConnected(edges) {
  const state = new Map();
  const stack = [];
  const components = [];
  const visit = (node) => {
    const own = { index: state.size, low: state.size, isOpen: true };
    state.set(node, own);
    stack.push(node);
    for (const next of edges.get(node)) {
      const known = state.get(next) ?? visit(next);
      if (known.isOpen) own.low = Math.min(own.low, known.low);
    }
    if (own.low === own.index) {
      const component = stack.splice(stack.indexOf(node));
      for (const member of component) state.get(member).isOpen = false;
      components.push(component);
    }
    return own;
  };
  for (const node of edges.keys()) if (!state.has(node)) visit(node);
  return components;
}
