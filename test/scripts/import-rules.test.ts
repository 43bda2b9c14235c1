import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { tempDir } from '../support/temp.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

interface ImportRules {
  importProblems(root: string): string[];
  orderProblems(table?: Readonly<Record<string, readonly string[]>>): string[];
}

describe('import rules', () => {
  let rules: ImportRules;

  before(async () => {
    rules = (await import(join(ROOT, 'scripts', 'import-rules.mjs'))) as ImportRules;
  });

  it('import rules name each folder that is not in the order of the layers', () => {
    const table = { wire: ['wire'], util: ['wire', 'store'], store: ['util'] };
    expect(rules.orderProblems(table)).to.deep.equal([
      '  wire names wire, which is not above it in the table',
      '  util names store, which is not above it in the table',
    ]);
  });

  it('names each import that violates the import rules', async () => {
    const root = await tempDir('import-rules');
    try {
      const files = {
        'src/errors.ts': '',
        'src/store/domains.ts': "import { AppError } from '../errors.js';\nimport knex from 'knex';\n",
        'src/store/routes.ts': "import { routes } from '../api/domains/routes.js';\n",
        'src/api/domains/routes.ts':
          "import type { Pool } from 'pg';\nexport * from '../builds/routes.js';\n",
        'src/api/builds/routes.ts': "const { x } = await import('../../gateway/front.js');\n",
        'src/gateway/front.ts': "import './front-process.js';\n",
        'jobs/worker.ts': "import { front } from '../src/gateway/front.js';\n",
        'src/new/one.ts': "import '../errors.js';\n",
        'cli/package.json': '{"dependencies": {"commander": "1", "yaml": "1"}}',
        'cli/src/main.ts': "import { Command } from 'commander';\nimport { x } from '../../src/errors.js';\n",
        'cli/src/late.ts': "import { parse } from 'yaml';\nawait import('yaml');\nimport koa from 'koa';\n",
      };
      for (const [path, text] of Object.entries(files)) {
        await mkdir(dirname(join(root.path, path)), { recursive: true });
        await writeFile(join(root.path, path), text);
      }
      expect(rules.importProblems(root.path).sort()).to.deep.equal([
        '  cli/src/late.ts imports koa: cli/package.json does not name it',
        '  cli/src/late.ts imports yaml: it is loaded when it is needed: await import()',
        '  cli/src/main.ts imports ../../src/errors.js: it is a package of its own',
        '  jobs/worker.ts imports ../src/gateway/front.js: jobs may not import gateway',
        '  src/api/builds/routes.ts imports ../../gateway/front.js: api may not import gateway',
        '  src/api/domains/routes.ts imports ../builds/routes.js: resources do not import each other',
        '  src/api/domains/routes.ts imports pg: only store may',
        '  src/new/one.ts imports ../errors.js: new may not import src',
        '  src/store/routes.ts imports ../api/domains/routes.js: store may not import api',
      ]);
    } finally {
      await root.remove();
    }
  });
});
