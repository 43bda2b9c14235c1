/** Folders as they are read: files that are merged, and all that is wrong with one. */
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure } from '../support/expect.js';
import { askForPlan, type Files, fieldsOf, linesOf, type ShownPlan } from '../support/plans.js';

describe('a folder', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  const plan = async (files: Files, query = '') => expectData<ShownPlan>(await askForPlan(api, files, query));
  const yaml = (text: string, more: Files = {}): Files => ({ 'edge.yaml': text, ...more });

  describe('folders of several files', () => {
    it('merges the files of a folder in the order of their names, then the overlay', async () => {
      const files: Files = {
        'edge.yaml':
          'stack: o\ndomains:\n  - {host: o.example, description: base, policies: {timeout: 5, compress: {}}}\n',
        'edge/b.yaml': 'domains: [{host: p.example}]',
        'edge.staging.yaml':
          'domains:\n  - {host: O.example, description: null, policies: {timeout: 6, compress: null}}\n  - {host: q.example}\n',
        'edge.production.yaml': 'this: is not read',
      };
      expect(linesOf(await plan(files))).to.deep.equal([
        'create domain o.example',
        'create domain p.example',
      ]);
      const staged = await plan(files, '&env=staging');
      expect(linesOf(staged)).to.deep.equal([
        ...['create domain o.example', 'create domain p.example', 'create domain q.example'],
      ]);
      const fields = fieldsOf(staged, 'o.example');
      expect(fields).to.deep.include(['policies', null, { timeout: 6 }]);
      expect(JSON.stringify(fields)).to.not.include('base');
      expectFailure(
        await askForPlan(api, files, '&env=none'),
        'invalid_folder',
        /There is no edge\.none\.yaml/,
      );
      expectFailure(await askForPlan(api, files, '&env=../a'), 'invalid_input', /query\.env/);
    });

    it('names the file and the line of each problem in a folder of several files', async () => {
      const response = await askForPlan(
        api,
        {
          'edge.yaml':
            'stack: o\nendpoints:\n  - {host: o.example, method: GET, route: /a, limits: {timeout_ms: 5}}\n',
          'edge/more.yaml':
            'domains:\n\n  - host: o.example\n    enabled: maybe\n  - {host: o.example}\n  - {host: O.EXAMPLE}\n',
          'edge.x.yaml':
            'endpoints:\n  - host: o.example\n    method: GET\n    route: /a\n    limits: {timeout_ms: 99999999}\n',
        },
        '&env=x',
      );
      expectFailure(response, 'invalid_folder', /edge\/more\.yaml:4: domains\.0\.enabled: must be a boolean/);
      expectFailure(
        response,
        'invalid_folder',
        /edge\/more\.yaml:6: domains\.2: the domain "o\.example" is at edge\/more\.yaml:5 too/,
      );
      expectFailure(response, 'invalid_folder', /edge\.x\.yaml:5: endpoints\.0\.limits\.timeout_ms/);
      const { details } = response.body as { details: { problems: string[]; count: number } };
      expect(details.count).to.equal(3);
      expect(details.problems).to.have.length(3);
    });
  });

  it('accepts the same stack in several files of a folder, and refuses another one', async () => {
    const files = (stack: string) => yaml('stack: o', { 'edge/a.yaml': `stack: ${stack}` });
    expect((await plan(files('o'))).changes).to.deep.equal([]);
    expectFailure(
      await askForPlan(api, files('p')),
      'invalid_folder',
      /edge\/a\.yaml:1: stack is given with another value at edge\.yaml:1/,
    );
  });

  describe('folders that are refused', () => {
    const CASES: readonly (readonly [title: string, yaml: string, problem: RegExp])[] = [
      ['no stack', 'domains: []', /stack: is required/],
      ['an unknown member', '{stack: s, domain: []}', /domain: is not accepted; possible are/],
      [
        'an unknown member of an object',
        '{stack: s, domains: [{host: a.example, hots: 1}]}',
        /domains\.0\.hots: is not accepted/,
      ],
      ['domains that are not a list', '{stack: s, domains: {host: a.example}}', /domains: must be a list/],
      [
        'an endpoint in a collection that does not exist',
        '{stack: s, endpoints: [{host: a.example, method: GET, collection: no, path: /a}]}',
        /there is no collection "a\.example\/no"/,
      ],
      [
        'a collection whose domain does not exist',
        '{stack: s, collections: [{host: nowhere.example, name: c}]}',
        /there is no domain with the host "nowhere\.example"/,
      ],
      [
        'an endpoint with both route and path',
        '{stack: s, endpoints: [{host: a.example, method: GET, route: /a, path: /a}]}',
        /route: is needed, and no path/,
      ],
      [
        'a binding to an unknown service',
        '{stack: s, endpoints: [{host: a.example, method: GET, route: /a, bindings: {db: nothing}}]}',
        /bindings\.db: there is no service "nothing"/,
      ],
      [
        'limits of an endpoint above the settings',
        '{stack: s, endpoints: [{host: a.example, method: GET, route: /a, limits: {timeout_ms: 3600000}}]}',
        /limits\.timeout_ms: must be at most/,
      ],
      [
        'policies that contradict each other',
        '{stack: s, domains: [{host: a.example, policies: {cors: {origins: ["*"], credentials: true}}}]}',
        /policies\.cors\.credentials: must not be true/,
      ],
      [
        'a dependency on std, which is not a crate',
        '{stack: s, endpoints: [{host: a.example, method: GET, route: /a, dependencies: {std: "1"}}]}',
        /dependencies\.std/,
      ],
      [
        'a schedule whose cron expression is not valid',
        '{stack: s, endpoints: [{host: a.example, method: GET, route: /a, schedules: [{cron: x}]}]}',
        /schedules: cron: must have five fields/,
      ],
      [
        'a schedule whose path does not match the route',
        '{stack: s, endpoints: [{host: a.example, method: GET, route: /a, schedules: [{cron: "@hourly", path: /b}]}]}',
        /does not match the route/,
      ],
      [
        'a variable whose name is not allowed',
        '{stack: s, domains: [{host: a.example, variables: {PATH: x}}]}',
        /variables\.PATH/,
      ],
      [
        'the same route twice',
        '{stack: s, endpoints: [{host: a.example, method: GET, route: "/{a}"}, {host: a.example, method: GET, route: "/{b}"}]}',
        /is at edge\.yaml:1 too/,
      ],
      ['two YAML documents in a file', 'stack: s\n---\nstack: t', /has multiple documents/],
      ['a file that is not YAML', 'stack: [', /edge\.yaml:1: the file is not YAML/],
      [
        'the same key twice in a file',
        'stack: s\nstack: t',
        /edge\.yaml:2: the file has the key "stack" twice/,
      ],
    ];
    for (const [title, text, problem] of CASES)
      it(`refuses a folder with ${title}`, async () => {
        expectFailure(await askForPlan(api, yaml(text)), 'invalid_folder', problem);
      });

    it('refuses bombs of aliases, deep nesting, and paths out of the folder', async () => {
      const bomb = `a0: &a0 [x]\n${Array.from({ length: 30 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at},*a${at}]`).join('\n')}`;
      expectFailure(
        await askForPlan(api, yaml(`stack: s\n${bomb}`)),
        'invalid_folder',
        /expands more than 1000 aliases/,
      );
      expectFailure(
        await askForPlan(api, yaml(`stack: ${'['.repeat(9_999)}`)),
        'invalid_folder',
        /nested more than/,
      );
      expectFailure(
        await askForPlan(api, { ...yaml('stack: s'), '../x.rs': '' }),
        'invalid_folder',
        /"\.\."/,
      );
      const out =
        '{stack: s, endpoints: [{host: a.example, method: GET, route: /a, handler: ../../etc/passwd}]}';
      expectFailure(
        await askForPlan(api, yaml(out)),
        'invalid_folder',
        /there is no file \.\.\/\.\.\/etc\/passwd/,
      );
      expectFailure(await askForPlan(api, { 'other.yaml': '' }), 'invalid_folder', /There is no edge\.yaml/);
    });

    it('refuses a folder with more objects than IMPORT_OPERATIONS_LIMIT allows', async () => {
      const limited = await startApi({ config: { IMPORT_OPERATIONS_LIMIT: 1 } });
      try {
        const two = yaml('{stack: s, domains: [{host: a.example}, {host: b.example}]}');
        expectFailure(
          await askForPlan(limited, two),
          'invalid_folder',
          /2 domains; at most 1 are allowed \(IMPORT_OPERATIONS_LIMIT\)/,
        );
      } finally {
        await limited.close();
      }
    });

    it('refuses to plan a body that is not a folder, as JSON, ZIP or text', async () => {
      expectFailure(
        await api.post('/api/apply?dry_run=true', {}),
        'invalid_input',
        /body\.files: is required/,
      );
      expectFailure(await api.post('/api/apply?dry_run=true', 'x'), 'invalid_json');
      expectFailure(await api.post('/api/apply?dry_run=true'), 'invalid_input', /body: is required/);
      const headers = { 'content-type': 'application/zip' };
      expectFailure(
        await api.send('POST', '/api/apply?dry_run=true', { body: Buffer.from('no zip'), headers }),
        'invalid_folder',
        /ZIP/,
      );
      expectFailure(
        await api.send('POST', '/api/apply?dry_run=true', {
          body: 'x',
          headers: { 'content-type': 'text/plain' },
        }),
        'unsupported_media_type',
        /application\/zip/,
      );
    });
  });
});
