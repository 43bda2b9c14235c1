/** `npm run check`: lines of comments and Markdown fit 120 characters, except tables, code blocks and links. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ROOT } from './prepare.mjs';

const LIMIT = 120;
const FOLDERS = [
  'bench/',
  'cli/src/',
  'docs/',
  'examples/',
  'jobs/',
  'migrations/',
  'rust/',
  'scripts/',
  'src/',
  'test/',
];
/** Generated. */
const EXCLUDED = /^bench\/RESULTS\.md$|^(?:cli|ui)\/src\/generated\//;
const COMMENT = /^\s*(\/\/|\/\*|\*)/;
const EXEMPT = /https?:\/\/|^\s*(\/\/[/!])?\s*\|/;

/** What is built appears and goes meanwhile. */
const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
});
const problems = files
  .split('\n')
  .filter((file) => !file.includes('/') || FOLDERS.some((folder) => file.startsWith(folder)))
  .filter(
    (file) => /\.(md|ts|mjs|cjs|rs)$/.test(file) && !EXCLUDED.test(file) && existsSync(join(ROOT, file)),
  )
  .flatMap((file) => {
    const isMarkdown = file.endsWith('.md');
    let isCode = false;
    return readFileSync(join(ROOT, file), 'utf8')
      .split('\n')
      .flatMap((line, at) => {
        if (isMarkdown && /^\s*```/.test(line)) isCode = !isCode;
        const isProse = isMarkdown ? !isCode : COMMENT.test(line);
        return isProse && line.length > LIMIT && !EXEMPT.test(line) ? [`  ${file}:${at + 1}`] : [];
      });
  });
if (problems.length > 0) fail(`Lines over ${LIMIT} characters:\n${problems.join('\n')}`);
