/** The transcript of docs/CLI.md is what the commands print now. */
import { expect } from 'chai';
import { type Stack, startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';
import { lastingPart, transcriptOf, writtenTranscript } from '../support/transcript.js';

describe('the transcript of the command line', function () {
  this.timeout(300_000);
  let stack: Stack;
  let folder: TempDir;

  before(async () => {
    folder = await tempDir('transcript');
    stack = await startStack();
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  it('the transcript is what the commands print; else run `node scripts/cli-transcript.mjs`', async () => {
    const printed = await transcriptOf(stack, folder.path);
    expect(lastingPart(printed)).to.equal(lastingPart(writtenTranscript()));
  });
});
