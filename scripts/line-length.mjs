/** `npm run check`: lines of comments and Markdown fit 120 characters, except tables, code blocks and links. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ROOT } from './prepare.mjs';

const LIMIT = 120;
const FOLDERS = [
  'bench',
  'cli/src',
  'docs',
  'examples',
  'jobs',
  'migrations',
  'rust',
  'scripts',
  'src',
  'test',
];
/** Generated. */
const EXCLUDED = /^rust\/(?:sdk\/)?target\/|^bench\/RESULTS\.md$|^(?:cli|ui)\/src\/generated\//;
const COMMENT = /^\s*(\/\/|\/\*|\*)/;
const EXEMPT = /https?:\/\/|^\s*(\/\/[/!])?\s*\|/;

const below = (folder) =>
  readdirSync(join(ROOT, folder), { recursive: true }).map((name) => join(folder, name));
const problems = [...readdirSync(ROOT), ...FOLDERS.flatMap(below)]
  .filter((file) => /\.(md|ts|mjs|cjs|rs)$/.test(file) && !EXCLUDED.test(file))
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
