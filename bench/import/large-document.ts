/**
 * How long does the import of a large real document take, how much memory does it need, and how much does it delay
 * other requests?
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { stringify } from 'yaml';
import { call } from '../../test/support/http.js';
import { must, type Stack } from '../../test/support/processes.js';
import { GITHUB_DOCUMENT } from '../../test/support/server-cache.js';
import { peakMegabytes } from '../support/process-figures.js';
import { median, type Row, round, timed } from '../support/report.js';
import { type Probe, startProbe, type Waits } from './probe.js';

const ROUNDS = 3;
const LEAST_OPERATIONS = 1_000;
/** About the duration of an import. */
const IDLE_MS = 2_000;
/** Of the document in YAML: part of the same. */
const YAML_OPERATIONS = 480;

/** Imports the document into a new domain each round, while a probe requests the health of the API. */
export async function largeDocument(stack: Stack): Promise<Row[]> {
  const webPid = stack.processes.get('web')?.pid;
  if (webPid === undefined) throw new Error('web does not run');
  const spec = await readFile(GITHUB_DOCUMENT, 'utf8');
  const before = await peakMegabytes(webPid);
  const probe = await startProbe(`${stack.apiUrl}/api/health`);
  try {
    const imports: Imported[] = [];
    for (let number = 1; number <= ROUNDS; number++) {
      imports.push(await importOnce(stack, `document-${number}.bench`, spec, probe));
    }
    const after = await peakMegabytes(webPid);
    return [...rows(imports, { before, after }), await yamlRow(stack, spec)];
  } finally {
    await probe.stop();
  }
}

interface Document {
  readonly paths: Readonly<Record<string, object>>;
  readonly components: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** The first operations of a document, and what they refer to. */
function partOf(document: Document) {
  let operations = 0;
  const paths = Object.entries(document.paths).filter(([, item]) => {
    if (operations >= YAML_OPERATIONS) return false;
    operations += Object.keys(item).length;
    return true;
  });
  const components: Record<string, Record<string, unknown>> = {};
  const collect = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const [, , kind = '', name = ''] = '$ref' in value ? String(value.$ref).split('/') : [];
    const collected = components[kind] ?? {};
    if (name !== '' && !Object.hasOwn(collected, name)) {
      collected[name] = document.components[kind]?.[name];
      components[kind] = collected;
      collect(collected[name]);
    }
    Object.values(value).forEach(collect);
  };
  collect(Object.fromEntries(paths));
  return { document: { ...document, paths: Object.fromEntries(paths), components }, operations };
}

/** A document of 3 MB in YAML, which is slower to parse than JSON. */
async function yamlRow(stack: Stack, spec: string): Promise<Row> {
  const { document, operations } = partOf(JSON.parse(spec) as Document);
  const text = stringify(document, { aliasDuplicateObjects: false });
  const times: number[] = [];
  for (let number = 1; number <= ROUNDS; number++) {
    const host = `yaml-${number}.bench`;
    await must(stack.api.post('/api/domains', { name: host, host }));
    const body = Buffer.from(JSON.stringify({ spec: text, domain: host }));
    times.push((await timed(() => importDocument(stack, body))) / 1000);
  }
  return {
    question: `import of a YAML document of ${round(text.length / 1e6)} MB and ${operations} operations, request to answer`,
    measured: `median of ${ROUNDS}, slowest ${round(Math.max(...times))} s`,
    value: median(times),
    unit: 's',
    bar: { atMost: 2 },
  };
}

interface Imported {
  readonly seconds: number;
  readonly operations: number;
  readonly idle: Waits;
  readonly waits: Waits;
}

async function importOnce(stack: Stack, host: string, spec: string, probe: Probe): Promise<Imported> {
  const domain = (await must(stack.api.post('/api/domains', { name: host, host }))) as { id: string };
  const body = Buffer.from(
    JSON.stringify({ spec, domain: host, domain_id: domain.id, create_collection: true }),
  );
  await probe.take();
  await delay(IDLE_MS);
  const idle = await probe.take();
  let operations = 0;
  const milliseconds = await timed(async () => {
    operations = await importDocument(stack, body);
  });
  const waits = await probe.take();
  if (operations < LEAST_OPERATIONS) throw new Error(`only ${operations} endpoints were created`);
  return { seconds: milliseconds / 1000, operations, idle, waits };
}

async function importDocument({ apiUrl }: Stack, body: Buffer): Promise<number> {
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const { status, text } = await call(`${apiUrl}/api/import/openapi`, { method: 'POST', headers, body });
  if (status !== 200) throw new Error(`The import was answered with ${status}: ${text.slice(0, 1_000)}`);
  return (JSON.parse(text) as { data: { endpoints_created: number } }).data.endpoints_created;
}

function rows(imports: readonly Imported[], memory: { before: number; after: number }): Row[] {
  const seconds = imports.map((each) => each.seconds);
  const longest = Math.max(...imports.map(({ waits }) => waits.longest));
  const idle = Math.max(...imports.map((each) => each.idle.longest));
  const typical = median(imports.map(({ waits }) => waits.median));
  return [
    {
      question: `import of a document of 13 MB and ${imports[0]?.operations} operations, request to answer`,
      measured: `median of ${ROUNDS}, slowest ${round(Math.max(...seconds))} s`,
      value: median(seconds),
      unit: 's',
      bar: { atMost: 1.2 },
    },
    {
      question: 'the same: peak memory of the web process',
      measured: `VmHWM after ${ROUNDS} imports, ${round(memory.before)} MB before`,
      value: memory.after,
      unit: 'MB',
      bar: { atMost: 300 },
    },
    {
      question: 'the same: longest that another request of the API waits meanwhile',
      measured: `\`GET /api/health\` every 2 ms: median ${round(typical)} ms; longest when idle ${round(idle)} ms`,
      value: longest,
      unit: 'ms',
      bar: { atMost: 50 },
    },
  ];
}
