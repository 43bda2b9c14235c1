/** What the processes of the Procfile may still do where root has started them. */
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { expect } from 'chai';
import { ACTOR_HOST_USER, HAS_UNTRUSTED_USERS, WEB_USER } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { descendantsOf, rightsOf } from '../support/process-state.js';
import { must, type ProcessName, type Stack, startStack } from '../support/processes.js';
import { tempDir } from '../support/temp.js';
import { activeService } from '../support/test-services.js';

const KILL = 1n << 5n;
const LOAD_MODULES = 1n << 16n;
/** To files of others. */
const ACCESS = 1n << 1n;
const DOCUMENT = {
  openapi: '3.0.3',
  info: { title: 'x', version: '1' },
  paths: { '/x': { get: { responses: { 200: { description: 'x' } } } } },
};
const IMPORT = { domain: '*', spec: JSON.stringify(DOCUMENT) };

describe('processes that root has started', function () {
  if (!HAS_UNTRUSTED_USERS) return;
  this.timeout(180_000);
  let stack: Stack;
  let certificates: Awaited<ReturnType<typeof tempDir>>;
  const pidOf = (name: ProcessName) => stack.processes.get(name)?.pid ?? 0;
  before(async () => {
    certificates = await tempDir('certificates');
    const file = join(certificates.path, 'authority.pem');
    await writeFile(file, rootCertificates[0] ?? '', { mode: 0o600 });
    stack = await startStack({
      env: { NODE_EXTRA_CA_CERTS: file, LOG_LEVEL: 'info' },
      // As a folder that root has made with a umask of 077, or restored.
      prepareData: async (data) => {
        await chmod(data, 0o700);
        await mkdir(join(data, 'uploads'), { mode: 0o700 });
        return async () => undefined;
      },
    });
  });
  after(async () => {
    await stack?.close();
    await certificates?.remove();
  });

  it('web has a user of its own, without capabilities, which it cannot get again', async () => {
    expect(rightsOf(pidOf('web'))).to.include({
      ...{ user: WEB_USER, capabilities: 0n, noNewPrivs: true, isFiltered: true },
    });
    expect(await statusOf(pidOf('web'), 'CapBnd')).to.equal(0n);
    expect((await stat(join(stack.dataDir, 'uploads'))).uid).to.equal(WEB_USER);
    expect(stack.processes.get('web')?.printed()).to.include('belongs to the user of web now');
  });

  it('actor-host likewise; what starts services for it has the rights for that, and no others', async () => {
    const pid = pidOf('actor-host');
    expect(rightsOf(pid)).to.include({ user: ACTOR_HOST_USER, capabilities: 0n, noNewPrivs: true });
    expect(await statusOf(pid, 'CapBnd')).to.equal(0n);
    const [starter, ...others] = descendantsOf(pid);
    expect(others).to.deep.equal([]);
    const { user, capabilities, noNewPrivs } = rightsOf(starter?.pid ?? 0);
    expect({ user, noNewPrivs }).to.deep.equal({ user: 0, noNewPrivs: true });
    expect(capabilities & ~0b1_1110_1111n).to.equal(0n);
  });

  it('worker and gateway keep the capabilities that starting programs as other users takes', async () => {
    for (const name of ['worker', 'gateway'] as const) {
      const { user, capabilities, noNewPrivs } = rightsOf(pidOf(name));
      expect({ user, noNewPrivs }).to.deep.equal({ user: 0, noNewPrivs: true });
      expect(capabilities & KILL, name).to.equal(KILL);
      expect(capabilities & LOAD_MODULES, name).to.equal(0n);
      expect((await statusOf(pidOf(name), 'CapBnd')) & LOAD_MODULES, name).to.equal(0n);
    }
  });

  it('web reads what it needs below folders that are closed to its user, and nothing else there', async () => {
    const root = `/proc/${pidOf('web')}/root`;
    // As this test sees it: what is not there for root is not there for anybody.
    expect(await there(join(root, stack.dataDir, 'secret.key'))).to.equal(true);
    expect(await there(join(root, stack.dataDir, 'build'))).to.equal(false);
    expect(await there(join(root, certificates.path, 'authority.pem'))).to.equal(true);
    const copy = await stat(join(root, certificates.path, 'authority.pem'));
    expect({ uid: copy.uid, mode: copy.mode & 0o777 }).to.deep.equal({ uid: WEB_USER, mode: 0o400 });
    expect(stack.processes.get('web')?.printed()).not.to.include('Ignoring extra certs');
  });

  it('web reaches the gateway, and the metrics of all processes', async () => {
    await eventually(async () => {
      const { body } = await stack.api.get('/metrics');
      expect(String(body))
        .to.include('edge_build_duration_seconds')
        .and.to.include('edge_gateway_endpoints_asleep');
    });
    const route = await must(stack.api.get('/api/route?host=nowhere.example&path=/none'));
    expect(route).to.be.an('object');
  });

  it('web spools bodies of imports, and reads them in a process of its own user', async () => {
    const { status, body } = await stack.api.post('/api/import/openapi?dry_run=true', IMPORT);
    expect(status, JSON.stringify(body)).to.equal(200);
  });
});

describe('processes that root has started where nothing can be mounted', function () {
  if (!HAS_UNTRUSTED_USERS) return;
  this.timeout(180_000);
  let stack: Stack;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'actor-host'],
      lacks: 'sys_admin',
      prepareData: async (data) => {
        await chmod(data, 0o700);
        return async () => undefined;
      },
    });
  });
  after(() => stack?.close());

  it('web and actor-host stay root with access to files alone, say so, and work', async () => {
    for (const name of ['web', 'actor-host'] as const) {
      const { pid = 0, printed } = stack.processes.get(name) ?? {};
      expect(rightsOf(pid), name).to.include({ user: 0, capabilities: ACCESS, noNewPrivs: true });
      expect(printed?.()).to.include('this process stays root, with access to all files');
    }
    const id = await activeService(stack.api, 'sqlite', { path: 'x.db', create_if_missing: true });
    const { state } = (await must(stack.api.get(`/api/services/${id}`))) as { state: string };
    expect(state).to.equal('connected');
    const { status } = await stack.api.post('/api/import/openapi?dry_run=true', IMPORT);
    expect(status).to.equal(200);
  });
});

async function statusOf(pid: number, name: string): Promise<bigint> {
  const status = await readFile(`/proc/${pid}/status`, 'latin1');
  return BigInt(`0x${new RegExp(`^${name}:\\s+(\\w+)`, 'm').exec(status)?.[1] ?? ''}`);
}

async function there(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
