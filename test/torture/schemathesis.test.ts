/**
 * Schemathesis puts the management API to the test by its own description, with every check it has: what fits the
 * description has to be accepted and what does not refused, every answer has to be described, and none may be a failure
 * of the service.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { type S3Backend, startS3Backend } from '../support/backends/s3.js';
import { ANYTHING } from '../support/handler-sources.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { SERVER_CACHE } from '../support/server-cache.js';
import { type TempDir, tempDir } from '../support/temp.js';

const PACKAGES = join(SERVER_CACHE, 'schemathesis-4.32.5');
const KEY = 'a-key-for-schemathesis';

/**
 * The most an endpoint may ask for by the description; an operator can allow less, which the description cannot know.
 */
const MOST = {
  HANDLER_MEMORY_MB: '1048576',
  HANDLER_PROCESSES: '1000000',
  HANDLER_OPEN_FILES: '1048576',
  HANDLER_CPU_PERCENT: '102400',
  HANDLER_CONCURRENT_REQUESTS: '65536',
  // Never, the highest value.
  HANDLER_IDLE_MS: '0',
  REQUEST_TIMEOUT_MS: '3600000',
};

/** Those of the endpoint that is started: what this machine can give. */
const LIMITS = { memory_mb: 512, processes: 64, open_files: 256, cpu_percent: 400, timeout_ms: 10_000 };

describe('Schemathesis', function () {
  // Other tests use the processors at the same time.
  this.timeout(1_200_000);
  let stack: Stack;
  let s3: S3Backend;
  let folder: TempDir;
  let config: string;

  before(async () => {
    folder = await tempDir('schemathesis');
    s3 = await startS3Backend();
    // Made-up crates are not looked for.
    stack = await startStack({ env: { ...MOST, API_KEY: KEY, CARGO_NET_OFFLINE: 'true' } });
    const headers = { authorization: `Bearer ${KEY}` };
    const post = async (path: string, body?: object) =>
      (await must(stack.api.post(path, body, { headers }))) as { id: string; build_id: string };
    const storage = await post('/api/services', {
      name: 'files',
      service_type: 'objstore',
      config: s3.config,
    });
    const activated = await stack.api.post(`/api/services/${storage.id}/activate`, undefined, { headers });
    expect(activated.status).to.equal(200);
    // It follows the id of a collection from the list of endpoints, also when there is none.
    const domain = await post('/api/domains', { name: 'd', host: 'd.test' });
    const collection = await post('/api/collections', { name: 'c', domain_id: domain.id });
    const endpoint = { name: 'a', path: '/a', method: 'GET', domain: '*', code: ANYTHING, limits: LIMITS };
    const { id } = await post('/api/endpoints', { ...endpoint, collection_id: collection.id });
    const { build_id } = await post(`/api/endpoints/${id}/compile`);
    const description = await stack.api.get('/api/openapi.json', { headers });
    await writeFile(join(folder.path, 'openapi.json'), JSON.stringify(description.body));
    await writeFile(join(folder.path, 'hooks.py'), HOOKS);
    config = join(folder.path, 'schemathesis.toml');
    await writeFile(config, configure({ endpoint: id, build: build_id, service: storage.id }));
  });
  after(async () => {
    await stack?.close();
    await s3?.remove();
    await folder?.remove();
  });

  // While the object storage is active, which the other routes may end.
  it('Schemathesis finds no fault in the routes of object files', () =>
    runs(['--include-path-regex', '^/api/minio/'], 100));
  // The stream of changes has no end, which it would wait for.
  it('Schemathesis finds no fault in any route of the API but those of object files and events', () =>
    runs(['--exclude-path-regex', '^/api/(minio/|events$)'], 1_000));

  async function runs(args: readonly string[], leastCases: number): Promise<void> {
    const { code, output } = await schemathesis(
      ['--config-file', config, 'run', 'openapi.json', '--url', stack.apiUrl, ...args],
      folder.path,
    );
    expect(code, output).to.equal(0);
    const [, cases] = /^ *(\d+) generated/m.exec(output) ?? [];
    expect(Number(cases), output).to.be.above(leastCases);
  }
});

/** No body may have a member of this name, at any depth, which no schema can say. */
const HOOKS = `
import json
import schemathesis

@schemathesis.hook
def filter_body(context, body):
    try:
        return '"__proto__"' not in json.dumps(body)
    except TypeError:  # not JSON
        return True
`;

/** With a seed: the same description makes for the same requests. */
function configure(ids: { endpoint: string; build: string; service: string }): string {
  return `
hooks = "hooks.py"
continue-on-failure = true
color = false
request-timeout = 60
seed = 2

[generation]
database = "none"
max-examples = 10

[phases.stateful]
max-steps = 10
generation.max-examples = 250

# It does not know of cascading deletions (of a domain with its collections and their endpoints), and takes the 404 for
# a resource that a body names for one about the path.
[checks]
ensure_resource_availability.enabled = false

[auth.openapi.apiKey]
bearer = "${KEY}"

# What is there; most of what is made up is not.
[[operations]]
include-path-regex = "^/api/endpoints/{id}/(compile|start|stop)$"
parameters = { "path.id" = "${ids.endpoint}" }

[[operations]]
include-path = "/api/builds/{id}"
parameters = { "path.id" = "${ids.build}" }

[[operations]]
include-path-regex = "^/api/services/{id}/(test|activate|deactivate)$"
parameters = { "path.id" = "${ids.service}" }

# The content of a document, of a folder or of a ZIP file is no matter of a schema: 400 for what cannot be read.
[[operations]]
include-path-regex = "^/api/(import/|apply$)"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409"]

# A cursor comes from the page before it, and a time span has a beginning before its end.
[[operations]]
include-name-regex = "^GET /api/(applies|audit|builds|domains|endpoints|services|logs|series|overview/endpoints|endpoints/{id}/(logs|versions))$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404"]

# What a request has to be like depends on the route and the method of its endpoint, and cron is a language of its own.
[[operations]]
include-path-regex = "^/api/endpoints/{id}/(invoke|enqueue|schedules|schedules/{schedule_id})$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409", "422", "5xx"]

# Code is no matter of a schema, nor are the hosts that the operator allows, and which crates a lock has.
[[operations]]
include-path-regex = "^/api/endpoints/{id}/(compile|deploy)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409", "422", "5xx"]

# Whether a host is one of the internet is no matter of a schema, and what an alert is about depends on its condition.
[[operations]]
include-path-regex = "^/api/alerts(/{id})?$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409"]

# Nor is whether a text is a certificate.
[[operations]]
include-path = "/api/domains/{id}/certificate"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404"]

# Most domains have no order.
[[operations]]
include-path = "/api/domains/{id}/certificate/order"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404"]

# Who has no sessions any more is still there: the list is empty.
[[operations]]
include-name = "GET /api/users/{id}/sessions"
checks.use_after_free.enabled = false

# Whether a public key is one is no matter of a schema, nor what the members of a policy say of each other.
[[operations]]
include-name-regex = "^(POST|PUT) /api/(domains|collections|endpoints)(/{id})?$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409"]

# What expires does so in the future.
[[operations]]
include-name-regex = "^POST /api/(domains/{id}/keys|tokens)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409"]

# Of an endpoint without a collection, and of a token without a user, it takes the null for an id.
[[operations]]
include-path-regex = "^/api/(collections|users)/{id}"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409"]

# What a config has to be like depends on the type of the service: 400 for one of another type.
[[operations]]
include-path-regex = "^/api/services(/{id})?$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "404", "409"]
`;
}

/** Runs it; resolves with all it has printed. */
async function schemathesis(args: readonly string[], cwd: string): Promise<{ code: number; output: string }> {
  const { exitCode, all } = await execa('python3', ['-m', 'schemathesis.cli', ...args], {
    cwd,
    env: { PYTHONPATH: PACKAGES, PYTHONDONTWRITEBYTECODE: '1' },
    all: true,
    reject: false,
  });
  return { code: exitCode ?? 1, output: all };
}
