import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type S3Backend, startS3Backend } from '../../support/backends/s3.js';
import { eventually } from '../../support/eventually.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { expectAccessible, expectFits, expectUnharmed, openBrowser, type Ui } from '../../support/ui.js';

const PAGE = '<script>document.title="hacked"</script>';

describe('UI: object files', () => {
  let stack: Stack;
  let backend: S3Backend;
  let ui: Ui;
  let service = '';
  let more = '';

  before(async () => {
    backend = await startS3Backend(['files', 'more']);
    stack = await startStack({ processes: ['web', 'actor-host'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
    await backend?.remove();
  });

  it('the objects page says what to do without an active object storage', async () => {
    const { page, close } = await ui.open('/ui/objects');
    await page.getByText('There is no object storage yet').waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'New object storage' }).click();
    await page.getByLabel('Bucket').waitFor();
    await close();
    const body = { name: 'files', service_type: 'objstore', config: backend.config };
    service = ((await must(stack.api.post('/api/services', body))) as { id: string }).id;
    const again = await ui.open('/ui/objects');
    await again.page.getByRole('link', { name: 'Open “files” to activate it' }).waitFor();
    await again.close();
    const activated = await stack.api.post(`/api/services/${service}/activate`);
    expect(activated.status).to.equal(200);
  });

  it('the objects page uploads several files at once, and downloads, replaces and deletes one', async () => {
    const { page, close } = await ui.open('/ui/objects');
    await page.getByText('The bucket is empty').waitFor();
    const large = Buffer.alloc(3_000_000, 'x');
    await page
      .getByLabel('Choose files')
      .and(page.locator('input'))
      .setInputFiles([
        { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('first') },
        { name: 'large.bin', mimeType: 'application/octet-stream', buffer: large },
        { name: `${PAGE.replaceAll('/', '')}.html`, mimeType: 'text/html', buffer: Buffer.from(PAGE) },
      ]);
    await page.getByText('3 of 3 uploaded').waitFor();
    expect(await readFile(join(backend.bucketFolder, 'large.bin'))).to.have.length(large.length);
    await page.getByRole('row', { name: /a\.txt/ }).waitFor();
    await expectAccessible(page);
    await expectUnharmed(page);

    const downloaded = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download a.txt' }).click();
    const download = await downloaded;
    expect(await readFile(await download.path(), 'utf8')).to.equal('first');
    expect(download.suggestedFilename()).to.equal('a.txt');

    // Who has uploaded what can be asked later.
    await page.goto('/ui/access/audit?object_kind=object');
    await page.getByText('uploaded a file “a.txt”').waitFor();
    await page.goto('/ui/objects');

    // One with the name of another is asked about.
    const chooser = page.getByLabel('Choose files').and(page.locator('input'));
    await chooser.setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('second') });
    await page.getByText('Replace the file?').waitFor();
    await page.getByRole('button', { name: 'Replace' }).click();
    await page.getByText('1 of 1 uploaded').waitFor();
    expect(await readFile(join(backend.bucketFolder, 'a.txt'), 'utf8')).to.equal('second');

    await page.getByRole('button', { name: 'Delete a.txt' }).click();
    await page.getByRole('button', { name: 'Delete the file' }).click();
    await page.getByRole('row', { name: /a\.txt/ }).waitFor({ state: 'detached' });
    await close();
  });

  it('a folder of the objects page has an address, and files that are dropped are uploaded to it', async () => {
    await mkdir(join(backend.bucketFolder, 'images', 'cats'), { recursive: true });
    await writeFile(join(backend.bucketFolder, 'images', 'cats', 'tom.png'), 'tom');
    const { page, close } = await ui.open('/ui/objects');
    await page.getByRole('link', { name: 'images/' }).click();
    await page.getByRole('link', { name: 'cats/' }).click();
    await page.getByRole('row', { name: /tom\.png/ }).waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download images/cats/tom.png' }).click();
    expect((await download).suggestedFilename()).to.equal('tom.png');
    expect(new URL(page.url()).searchParams.get('prefix')).to.equal('images/cats/');

    const dropped = await page.evaluateHandle(
      `(() => {
        const transfer = new DataTransfer();
        transfer.items.add(new File(['kitty'], 'kitty.png'));
        return transfer;
      })()`,
    );
    await page.getByRole('group', { name: 'Upload' }).dispatchEvent('drop', { dataTransfer: dropped });
    await page.getByRole('row', { name: /kitty\.png/ }).waitFor();
    expect(await readFile(join(backend.bucketFolder, 'images', 'cats', 'kitty.png'), 'utf8')).to.equal(
      'kitty',
    );

    await page.goBack();
    await page.getByRole('link', { name: 'cats/' }).waitFor();
    await page.reload();
    await page.getByRole('link', { name: 'cats/' }).waitFor();
    await close();
  });

  it('the objects page uploads, downloads and deletes files with odd keys', async () => {
    const { page, close } = await ui.open(`/ui/objects?service=${service}&prefix=odd/`);
    await page.getByText('Nothing begins with this').waitFor();
    const names = ['what?.txt', 'at#.txt', '%2e%2e', '%41', 'A', 'a b', 'a+b', '..a', 'a..b', '.a'];
    names.push("it's “é”😀", 'back\\slash', ' before', 'a\u202egnp.exe', `${PAGE.replaceAll('/', '')}`);
    await page
      .getByLabel('Choose files')
      .and(page.locator('input'))
      .setInputFiles(
        names.map((name) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(`it is ${name}`) })),
      );
    await page.getByText(`${names.length} of ${names.length} uploaded`).waitFor();
    for (const name of names) {
      const row = page.getByRole('row').filter({
        has: page.getByRole('link', { name: `Download odd/${name}`, exact: true }),
      });
      const download = page.waitForEvent('download');
      await row.getByRole('link', { name: 'Download' }).click();
      expect(await readFile(await (await download).path(), 'utf8')).to.equal(`it is ${name}`);
      await row.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('button', { name: 'Delete the file' }).click();
      await row.waitFor({ state: 'detached' });
    }
    expect(await readdir(join(backend.bucketFolder, 'odd')).catch(() => [])).to.deep.equal([]);
    await close();
  });

  it('the objects page does not offer a file whose key a browser would change, and says why', async () => {
    await writeFile(join(backend.bucketFolder, 'kept.txt'), 'not this one');
    const { page, close } = await ui.open('about:blank');
    // A storage that keeps objects as files cannot have them; others can.
    await page.route('**/api/minio/objects?*', async (route) => {
      const response = await route.fetch();
      const list = (await response.json()) as { objects: object[] };
      const prefix = new URL(route.request().url()).searchParams.get('prefix') ?? '';
      const keys = ['..', '.', 'a/../kept.txt', '/kept.txt'].filter((key) => key.startsWith(prefix));
      const objects = keys.map((key) => ({ key, size: 1, last_modified: '2026-01-01T00:00:00Z' }));
      await route.fulfill({ response, json: { ...list, objects: [...list.objects, ...objects] } });
    });
    await page.goto(`/ui/objects?service=${service}`);
    await page.getByRole('link', { name: 'Download kept.txt', exact: true }).waitFor();
    await page.getByText('has “..” between slashes').first().waitFor();
    await page.getByText('has “.” between slashes').waitFor();
    await page.getByRole('link', { name: 'a/' }).click();
    await page.getByRole('link', { name: '../' }).click();
    await page.getByText('has “..” between slashes').waitFor();
    expect(await page.getByRole('button', { name: /^Delete/ }).count()).to.equal(0);
    expect(await page.getByRole('link', { name: /^Download/ }).count()).to.equal(0);
    await expectAccessible(page);
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await page.goto(`/ui/objects?service=${service}&prefix=/`);
    await page.getByText('begins with a slash').waitFor();
    await close();
  });

  it('the objects page shows files of others when it is opened, and asks before it replaces one', async () => {
    const write = (name: string) => writeFile(join(backend.bucketFolder, name), 'theirs');
    const { page, close } = await ui.open(`/ui/objects?service=${service}`);
    const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) }).waitFor();
    await page.getByRole('link', { name: 'images/' }).waitFor();
    await write('one.txt');
    await page.getByRole('link', { name: 'images/' }).click();
    await page.getByRole('link', { name: 'cats/' }).waitFor();
    await page.goBack();
    await row('one.txt');
    await write('two.txt');
    await page.getByRole('link', { name: 'Services', exact: true }).click();
    await page.getByRole('heading', { name: 'Services', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Objects', exact: true }).click();
    await row('two.txt');
    await write('three.txt');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await row('three.txt');

    await write('four.txt');
    const chooser = page.getByLabel('Choose files').and(page.locator('input'));
    await chooser.setInputFiles({ name: 'four.txt', mimeType: 'text/plain', buffer: Buffer.from('mine') });
    await page.getByText('Replace the file?').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await row('four.txt');
    expect(await readFile(join(backend.bucketFolder, 'four.txt'), 'utf8')).to.equal('theirs');
    await close();
  });

  it('an upload of a file that fails says why, and can be tried again', async () => {
    const { page, close } = await ui.open(`/ui/objects?service=${service}`);
    await page.getByRole('link', { name: 'images/' }).waitFor();
    // The storage ends when it has said what is there.
    await page.route('**/api/minio/objects?*', async (route) => {
      if (route.request().method() === 'POST') await backend.stop();
      await route.continue();
    });
    const chooser = page.getByLabel('Choose files').and(page.locator('input'));
    await chooser.setInputFiles({ name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('late') });
    const list = page.getByRole('region', { name: 'Uploads' });
    await list.getByText('0 of 1 uploaded').waitFor();
    await list.getByText(/Request [0-9a-f-]{36}/).waitFor();
    // Nor is anything sent while it cannot be known what that would replace.
    await chooser.setInputFiles({ name: 'c.txt', mimeType: 'text/plain', buffer: Buffer.from('later') });
    await page
      .getByRole('status')
      .getByText(/request [0-9a-f-]{36}/)
      .first()
      .waitFor();
    await page.unroute('**/api/minio/objects?*');
    await backend.start();
    // The actor host needs some time to notice that the server is back.
    await eventually(async () => {
      await page.getByRole('button', { name: 'Try again to upload b.txt' }).click({ timeout: 1_000 });
      await page.getByText('1 of 1 uploaded').waitFor({ timeout: 1_000 });
    });
    expect(await list.getByText(/Request/).count()).to.equal(0);
    expect(await readFile(join(backend.bucketFolder, 'b.txt'), 'utf8')).to.equal('late');
    await close();
  });

  it('each object storage has its own list of uploads', async () => {
    const body = { name: 'more', service_type: 'objstore', config: { ...backend.config, bucket: 'more' } };
    more = ((await must(stack.api.post('/api/services', body))) as { id: string }).id;
    expect((await stack.api.post(`/api/services/${more}/activate`)).status).to.equal(200);
    const { page, close } = await ui.open(`/ui/objects?service=${service}`);
    const chooser = page.getByLabel('Choose files').and(page.locator('input'));
    await chooser.setInputFiles({ name: 'd.txt', mimeType: 'text/plain', buffer: Buffer.from('here') });
    await page.getByText('1 of 1 uploaded').waitFor();
    await page.getByLabel('Object storage').selectOption({ label: 'more' });
    await page.getByText('The bucket is empty').waitFor();
    expect(await page.getByText('1 of 1 uploaded').count()).to.equal(0);
    await page.goBack();
    await page.getByText('1 of 1 uploaded').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByText('1 of 1 uploaded').waitFor({ state: 'detached' });
    await close();
  });

  it('the objects page does not show another storage for one that is missing or not active', async () => {
    const { page, close } = await ui.open(`/ui/objects?service=${more}`);
    await page.getByText('The bucket is empty').waitFor();
    expect((await stack.api.post(`/api/services/${more}/deactivate`)).status).to.equal(200);
    await page.getByText('The object storage “more” is not active').waitFor();
    await expectAccessible(page);
    expect(await page.getByRole('group', { name: 'Upload' }).count()).to.equal(0);
    await page.getByRole('link', { name: 'Open “more” to activate it' }).waitFor();
    await page.getByRole('link', { name: 'Show “files”' }).click();
    await page.getByRole('row', { name: /^one\.txt/ }).waitFor();
    expect(new URL(page.url()).searchParams.get('service')).to.equal(service);
    await page.goto('/ui/objects?service=00000000-0000-4000-8000-000000000000');
    await page.getByText('There is no such object storage').waitFor();

    // Nor one that is shown because none was named.
    await page.goto('/ui/objects');
    await page.getByRole('row', { name: /^one\.txt/ }).waitFor();
    expect((await stack.api.post(`/api/services/${more}/activate`)).status).to.equal(200);
    await page.getByLabel('Object storage').waitFor();
    expect((await stack.api.post(`/api/services/${service}/deactivate`)).status).to.equal(200);
    await page.getByText('The object storage “files” is not active').waitFor();
    await close();
  });
});
