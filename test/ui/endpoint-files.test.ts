/** An endpoint of several files in the web UI: they are written, saved, shared, compiled and compared. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { type Stack, startStack } from '../support/processes.js';
import { expectAccessible, expectFits, openBrowser, type Ui } from '../support/ui.js';

const ALONE = `use rust_edge_gateway_sdk::prelude::*;

fn handle(_: Request) -> Response {
    Response::text(200, "alone")
}

handler_loop!(handle);
`;
const CODE = ALONE.replace('*;\n', '*;\n\nmod common;\n').replace('"alone"', 'common::greeting()');
const COMMON = 'pub fn greeting() -> &\'static str {\n    "hello"\n}\n';
/** Without a semicolon, which the compiler suggests. */
const MISTAKEN = COMMON.replace('    "hello"', '    let greeting = "hello"\n    greeting');
const MENDED = MISTAKEN.replace('"hello"\n', '"hello";\n');
const BINARY = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0xff]);

interface Stored {
  readonly code: string;
  readonly entry: string;
  readonly files: Readonly<Record<string, unknown>>;
}

describe('the files of an endpoint in the web UI', function () {
  this.timeout(180_000);
  let stack: Stack;
  let ui: Ui;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker'] });
    ui = await openBrowser(stack.apiUrl);
  });
  after(async () => {
    await ui?.close();
    await stack?.close();
  });

  let lastPath = 0;
  const create = async (fields: object) => {
    const body = { name: 'of files', path: `/files${++lastPath}`, method: 'GET', domain: '*', ...fields };
    return expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201).id;
  };
  const change = async (id: string, fields: object) =>
    expectData(await stack.api.put(`/api/endpoints/${id}`, fields));
  const stored = async (id: string) => expectData<Stored>(await stack.api.get(`/api/endpoints/${id}`));
  const tree = (page: Page) => page.getByRole('navigation', { name: 'Files', exact: true });
  const tabs = (page: Page) => page.getByRole('navigation', { name: 'Open files' });
  const editorOf = (page: Page, path: string) => page.getByRole('textbox', { name: `Code of ${path}` });
  const entryEditor = (page: Page) => editorOf(page, 'the handler');
  const problems = (page: Page) => page.getByRole('region', { name: 'What the compiler says' });
  const replaceText = async (page: Page, path: string, text: string) => {
    await editorOf(page, path).click();
    await page.keyboard.press('Control+a');
    // Inserted over what is selected, the browser gives it a style, which the content security policy refuses.
    await page.keyboard.press('Delete');
    await page.keyboard.insertText(text);
  };
  const addFile = async (page: Page, path: string) => {
    await page.getByRole('button', { name: 'Add file' }).click();
    await page.getByLabel('Path').fill(path);
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
  };

  it('the code page shows one file as before, and a second one that is added, written, renamed and saved', async () => {
    const id = await create({ code: CODE });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await entryEditor(page).waitFor();
    expect(await tree(page).or(tabs(page)).count()).to.equal(0);

    await addFile(page, '../common.rs');
    await page.getByText('Must not leave the folder: it has ".."').waitFor();
    await page.getByLabel('Path').fill('Handler.rs');
    await page.keyboard.press('Enter');
    await page.getByText('Is the same file as "handler.rs" where case does not count').waitFor();
    await expectAccessible(page);
    await page.getByLabel('Path').fill('src/common.rs');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\?file=src%2Fcommon\.rs$/);
    await replaceText(page, 'src/common.rs', COMMON);
    await tree(page)
      .getByRole('link', { name: /^common\.rs.*not saved yet$/ })
      .and(page.locator('[aria-current=true]'))
      .waitFor();
    await tree(page).getByRole('link', { name: 'handler.rs entry' }).waitFor();
    await expectAccessible(page);

    // It is not where `mod common` looks for it.
    await page.keyboard.press('Control+s');
    await page.getByRole('heading', { name: 'It does not compile' }).waitFor();
    await page.getByRole('button', { name: 'Actions for src/common.rs' }).click();
    await page.getByRole('menuitem', { name: 'Rename …' }).click();
    await page.getByLabel('Path').fill('common.rs');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await editorOf(page, 'common.rs').press('Control+s');
    await page.getByText('Saved, the same as version 1').waitFor();
    const { code, entry, files } = await stored(id);
    expect([code, entry, files]).to.deep.equal([CODE, 'handler.rs', { 'common.rs': COMMON }]);
    expect(await tree(page).getByText('not saved yet').count()).to.equal(0);

    await page.getByRole('button', { name: 'Actions for handler.rs' }).click();
    await page.getByRole('menuitem', { name: 'Rename …' }).click();
    await page.getByLabel('Path').fill('-x.rs');
    await page.keyboard.press('Enter');
    await page.getByText('Must not begin with "-" or "@"').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();

    // Undoing is of each file by itself.
    await tabs(page).getByRole('link', { name: 'handler.rs' }).click();
    await entryEditor(page).click();
    await page.keyboard.insertText('// Here.');
    await page.goBack();
    await editorOf(page, 'common.rs').click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('// There.');
    await tabs(page).getByRole('link', { name: 'handler.rs' }).click();
    await entryEditor(page).press('Control+z');
    await eventually(async () => expect(await entryEditor(page).innerText()).not.to.include('// Here.'));
    await tabs(page).getByRole('button', { name: 'Close handler.rs' }).click();
    await editorOf(page, 'common.rs').getByText('// There.').waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    await expectFits(page);
    await close();
  });

  it('the code page shows an error in a shared file there, and mends it for this endpoint only', async () => {
    const source = { code: CODE, files: { 'common.rs': MISTAKEN, 'data/note.txt': 'note\r\n' } };
    const id = await create(source);
    const others = [await create(source), await create({ ...source, entry: 'handler.rs' })];
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await tree(page).getByRole('link', { name: 'common.rs also in 2 endpoints' }).waitFor();
    await entryEditor(page).press('Control+s');
    await page.getByRole('heading', { name: 'It does not compile: 1 error' }).waitFor();
    expect(await page.locator('.cm-lintRange-error').count()).to.equal(0);
    await problems(page)
      .getByRole('button', { name: /^line 2 of common\.rs expected `;`/ })
      .first()
      .click();
    await editorOf(page, 'common.rs').and(page.locator(':focus')).waitFor();
    await page.locator('.cm-activeLine').filter({ hasText: 'let greeting' }).waitFor();
    expect(await page.locator('.cm-lint-marker-error').count()).to.equal(1);
    await expectAccessible(page);

    // From another file, the suggestion is applied in its own.
    await tree(page).getByRole('link', { name: 'note.txt' }).click();
    await editorOf(page, 'data/note.txt').waitFor();
    await problems(page)
      .getByRole('button', { name: /^Apply: add `;` here/ })
      .click();
    await editorOf(page, 'common.rs').getByText('"hello";').waitFor();
    await page.keyboard.press('Control+s');
    await page.getByText('Saved, the same as version 1').waitFor();
    expect((await stored(id)).files).to.deep.equal({ ...source.files, 'common.rs': MENDED });
    for (const other of others) expect((await stored(other)).files).to.deep.equal(source.files);
    await tree(page).getByRole('link', { name: 'common.rs', exact: true }).waitFor();
    await tree(page).getByRole('link', { name: 'note.txt also in 2 endpoints' }).waitFor();
    await close();
  });

  it('the code page applies a suggestion of the compiler in all files that it changes', async () => {
    const id = await create({ code: CODE, files: { 'common.rs': COMMON } });
    const range = (file: string, line: number, column: number) => {
      const end = { end_line: line, end_column: column + 'greeting'.length };
      return { file, line, column, ...end };
    };
    const edits = [range('handler.rs', 6, 33), range('common.rs', 1, 8)].map((edit) => ({
      ...edit,
      replacement: 'welcome',
    }));
    const suggestions = [{ message: 'welcome everybody', applicability: 'MaybeIncorrect', edits }];
    const message = { level: 'error', code: null, message: 'greets coldly', labels: [], rendered: '' };
    const diagnostics = [{ ...message, ...range('common.rs', 1, 8), suggestions }];
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    const refusal = { success: false, error: 'It does not compile.', code: 'compile_failed', diagnostics };
    await page.route('**/compile', (route) => route.fulfill({ status: 422, json: refusal }));
    await entryEditor(page).press('Control+s');
    await problems(page).getByRole('button', { name: 'line 1 of common.rs greets coldly' }).waitFor();
    await problems(page).getByRole('button', { name: 'Apply: welcome everybody' }).click();
    await entryEditor(page).getByText('common::welcome()').waitFor();
    expect(await page.getByRole('button', { name: /^Apply/ }).count()).to.equal(0);
    await entryEditor(page).press('Control+s');
    const welcome = (text: string) => text.replace('greeting', 'welcome');
    await eventually(async () => {
      const { code, files } = await stored(id);
      expect({ code, files }).to.deep.equal({ code: welcome(CODE), files: { 'common.rs': welcome(COMMON) } });
    });
    await close();
  });

  it('the code page uploads a binary file, says its size instead of showing it, and deletes it', async () => {
    const id = await create({ code: ALONE });
    const { page, close } = await ui.open(`/ui/endpoints/${id}`);
    await page.getByRole('button', { name: 'Add file' }).click();
    await page
      .getByLabel('Choose a file')
      .and(page.locator('input'))
      .setInputFiles({ name: 'logo.png', mimeType: 'image/png', buffer: BINARY });
    await page.getByText('logo.png: binary, 10 bytes').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByText('binary, 10 bytes').waitFor();
    expect(await page.getByRole('textbox', { name: /^Code of/ }).count()).to.equal(0);
    await expectAccessible(page);
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download logo.png' }).click();
    expect(await readFile(await (await download).path())).to.deep.equal(BINARY);
    await page.getByRole('button', { name: /^Compile/ }).click();
    await page.getByText('Saved, the same as version 1').waitFor();
    expect((await stored(id)).files).to.deep.equal({ 'logo.png': { base64: BINARY.toString('base64') } });

    await page.getByRole('button', { name: 'Actions for logo.png' }).click();
    await page.getByRole('menuitem', { name: 'Delete …' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await tree(page).waitFor({ state: 'detached' });
    await entryEditor(page).press('Control+s');
    await eventually(async () => expect((await stored(id)).files).to.deep.equal({}));
    await close();
  });

  it('the code page keeps unsaved files through a reload, and compares them with those of somebody else', async () => {
    const id = await create({ code: CODE, files: { 'common.rs': COMMON } });
    const { page, close } = await ui.open(`/ui/endpoints/${id}?file=common.rs`);
    await replaceText(page, 'common.rs', '// mine\n');
    page.on('dialog', (dialog) => void dialog.accept());
    await page.reload();
    await editorOf(page, 'common.rs').getByText('// mine').waitFor();
    expect((await stored(id)).files).to.deep.equal({ 'common.rs': COMMON });

    await change(id, { files: { 'common.rs': '// theirs\n', 'more.rs': '// more\n' } });
    const warning = page.getByRole('alert').filter({ hasText: 'Somebody else has changed this draft' });
    await warning.getByRole('button', { name: 'See the difference' }).click();
    const dialog = page.getByRole('dialog', { name: 'Theirs and yours' });
    await dialog.getByRole('textbox', { name: 'Theirs: common.rs' }).getByText('// theirs').waitFor();
    await dialog.getByRole('textbox', { name: 'Yours: common.rs' }).getByText('// mine').waitFor();
    await dialog.getByText('Only in: Theirs').waitFor();
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await warning.getByRole('button', { name: 'Take theirs' }).click();
    await editorOf(page, 'common.rs').getByText('// theirs').waitFor();
    await tree(page).getByRole('link', { name: 'more.rs' }).waitFor();

    // Ends of lines that are not changed here stay as they are.
    await change(id, { files: { 'common.rs': '// one\r\n// two\r\n' } });
    await editorOf(page, 'common.rs').getByText('// two').waitFor();
    expect(await page.getByRole('button', { name: 'Discard changes' }).count()).to.equal(0);
    await editorOf(page, 'common.rs').click();
    await page.keyboard.press('Control+Home');
    await page.keyboard.insertText('// zero\n');
    // What is compiled of it is no part of this.
    await page.route('**/compile', (route) => route.abort());
    await page.keyboard.press('Control+s');
    await eventually(async () =>
      expect((await stored(id)).files).to.deep.equal({ 'common.rs': '// zero\r\n// one\r\n// two\r\n' }),
    );
    await close();
  });

  it('a link to a place in a file opens it there, and one to a file that is gone says so', async () => {
    const id = await create({ code: CODE, files: { 'src/common.rs': COMMON } });
    const { page, close } = await ui.open(`/ui/endpoints/${id}/code?file=src/common.rs&line=2&column=6`);
    await page.locator('.cm-activeLine').filter({ hasText: '"hello"' }).waitFor();
    await editorOf(page, 'src/common.rs').and(page.locator(':focus')).waitFor();
    await page.keyboard.insertText('|');
    expect(await editorOf(page, 'src/common.rs').innerText()).to.include('"|hello"');
    await close();
    const gone = await ui.open(`/ui/endpoints/${id}/code?file=gone.rs&line=2&column=6`);
    await gone.page.getByText('There is no file gone.rs in this draft.').waitFor();
    await entryEditor(gone.page).waitFor();
    await gone.close();
  });

  it('the versions page compares all files of two versions, and shows those that differ', async () => {
    const same = { 'same.txt': 'same\n' };
    const id = await create({ code: CODE, files: { 'common.rs': COMMON, 'logo.png': 'text\n', ...same } });
    expectData(await stack.api.post(`/api/endpoints/${id}/compile`));
    const logo = { base64: BINARY.toString('base64') };
    const common = COMMON.replace('hello', 'good morning');
    await change(id, { files: { 'common.rs': common, 'logo.png': logo, ...same } });
    expectData(await stack.api.post(`/api/endpoints/${id}/compile`));
    const { page, close } = await ui.open(`/ui/endpoints/${id}/versions?from=1&to=2`);
    await page.getByRole('textbox', { name: 'Version 1: common.rs' }).getByText('"hello"').waitFor();
    await page.getByRole('textbox', { name: 'Version 2: common.rs' }).getByText('"good morning"').waitFor();
    await page.getByText('A binary file that differs.').waitFor();
    const headings = page.getByRole('region', { name: 'Comparison' }).getByRole('heading');
    expect(await headings.allTextContents()).to.deep.equal(['common.rs', 'logo.png']);
    await expectAccessible(page);

    // The code has another path.
    await change(id, { entry: 'main.rs', files: { 'common.rs': common, 'logo.png': logo, ...same } });
    await page.getByLabel('with').selectOption('The draft');
    await page.getByText('The code is handler.rs in Version 1, and main.rs in The draft.').waitFor();
    await close();
  });
});
