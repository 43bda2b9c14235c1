/** Documents that others have published: imported, exported, and imported again, nothing changes. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect } from 'chai';
import { startApi, type TestApi } from './api.js';
import { expectData } from './expect.js';
import { multipart } from './form.js';
import { endpointsOf, expectNoChange, exportedDocuments } from './openapi-export.js';
import { publishedPackage } from './server-cache.js';
import { zipOf } from './zip.js';

interface PublishedPackage {
  readonly source: string;
  readonly sha256: string;
  readonly documents: readonly {
    readonly path: string;
    readonly bundle?: string;
    readonly endpoints: number;
  }[];
}

const PACKAGES = JSON.parse(
  readFileSync('test/import/documents/published.json', 'utf8'),
) as readonly PublishedPackage[];

/** Declares the tests. @param validate what the import makes of requests */
export function describePublished(validate: 'off' | 'enforce'): void {
  describe(`an OpenAPI export of published documents with validate=${validate}`, () => {
    let api: TestApi;
    let count = 0;
    before(async () => {
      api = await startApi();
    });
    after(() => api.close());

    const importBundle = (folder: string, query: string) => {
      const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) =>
        one.isFile(),
      );
      const content = zipOf(
        Object.fromEntries(
          files.map(({ parentPath, name }) => {
            const path = join(parentPath, name);
            return [relative(folder, path), readFileSync(path)];
          }),
        ),
      );
      const { body, headers } = multipart([{ name: 'bundle', filename: 'api.zip', content }]);
      return api.post(`/api/import/bundle?${query}`, body, { headers });
    };

    for (const { source, sha256, documents } of PACKAGES)
      for (const { path, bundle, endpoints } of documents)
        it(`exports ${path} of ${source} without a change, with validate=${validate}`, async () => {
          const host = `published${++count}.example`;
          const domain_id = expectData<{ id: string }>(
            await api.post('/api/domains', { name: host, host }),
            201,
          ).id;
          const root = publishedPackage(sha256);
          const imported =
            bundle === undefined
              ? await api.post(`/api/import/openapi?validate=${validate}`, {
                  ...{ spec: readFileSync(join(root, path), 'utf8'), domain: host, domain_id },
                  // With and without one.
                  create_collection: count % 4 < 2,
                })
              : await importBundle(join(root, dirname(path)), `validate=${validate}&domain=${host}`);
          expectData(imported);
          expect(await endpointsOf(api, host)).to.have.lengthOf(endpoints);
          const { documents: exported, warnings } = await exportedDocuments(api, host);
          expect(warnings).to.deep.equal([]);
          expect(exported).to.have.lengthOf(1);
          const [one] = exported;
          if (!one) return;
          expect(one.validate).to.be.oneOf(['off', validate]);
          expect(await expectNoChange(api, host, one)).to.have.lengthOf(endpoints);
          // The second export is the first one.
          expect((await exportedDocuments(api, host)).documents).to.deep.equal([one]);
        });
  });
}
