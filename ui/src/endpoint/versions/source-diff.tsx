/** Two sources, and what differs: the code with its crates, and each file beside it. */
import { FirstOf } from '../../base/first-of.js';
import { Visible } from '../../base/visible.js';
import { changedCrates } from '../../generated/cargo-lock.js';
import { textAt } from '../code/files.js';
import { fileOf, isSameContent, type Source, textOf } from '../code/source.js';
import { DiffView } from './diff-view.js';

interface Side {
  readonly label: string;
  readonly source: Source;
}

interface SourceDiffProps {
  readonly before: Side;
  readonly after: Side;
}

export function SourceDiff({ before, after }: SourceDiffProps) {
  const [left, right] = [before.source, after.source];
  const texts = [textOf(left), textOf(right)] as const;
  const differing = differingFiles(left, right);
  const hasFiles = Object.keys({ ...left.files, ...right.files }).length > 0;
  return (
    <div class="stack">
      {left.entry !== right.entry && (
        <p>
          The code is <Visible text={left.entry} isOneLine /> in {before.label}, and{' '}
          <Visible text={right.entry} isOneLine /> in {after.label}.
        </p>
      )}
      {left.edition !== right.edition && (
        <p>
          The edition of Rust is {left.edition} in {before.label}, and {right.edition} in {after.label}.
        </p>
      )}
      <ChangedCrates left={left.lock} right={right.lock} />
      {(texts[0] !== texts[1] || differing.length === 0) && (
        <div class="stack tight">
          {hasFiles && <FileHeading path={right.entry} />}
          <DiffView
            before={{ label: before.label, text: texts[0] }}
            after={{ label: after.label, text: texts[1] }}
            isRust
          />
        </div>
      )}
      <FirstOf all={differing} first={SHOWN}>
        {(shown) => shown.map((path) => <FileDiff key={path} path={path} before={before} after={after} />)}
      </FirstOf>
    </div>
  );
}

interface LocksProps {
  readonly left: string | null;
  readonly right: string | null;
}

/** The crates whose versions differ, where both locks are known. */
function ChangedCrates({ left, right }: LocksProps) {
  const crates = left === null || right === null ? [] : changedCrates(left, right);
  if (crates.length === 0) return null;
  return (
    <section aria-label="Crates that differ">
      <ul>
        {crates.map(({ name, from, to }, at) => (
          <li key={at}>
            <code>{name}</code> {from ?? 'none'} → {to ?? 'none'}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Each has two editors: more make a page slow. */
const SHOWN = 20;

function differingFiles(left: Source, right: Source): readonly string[] {
  const paths = new Set([...Object.keys(left.files), ...Object.keys(right.files)]);
  return [...paths]
    .filter((path) => !isSameContent(fileOf(left.files, path), fileOf(right.files, path)))
    .sort();
}

function FileDiff({ path, before, after }: SourceDiffProps & { readonly path: string }) {
  const sides = [before, after].map(({ label, source }) => ({ label, content: fileOf(source.files, path) }));
  const only = sides.find((_, at) => sides[1 - at]?.content === undefined);
  const isBinary = sides.some(({ content }) => typeof content === 'object');
  const [left, right] = [textIn(before, path), textIn(after, path)];
  return (
    <div class="stack tight">
      <FileHeading path={path} />
      {only && <p class="muted">Only in: {only.label}</p>}
      {!only && isBinary && <p class="muted">A binary file that differs.</p>}
      {!only && !isBinary && left === right && <p class="muted">Only the ends of lines differ.</p>}
      {!isBinary && left !== right && (
        <DiffView
          before={{ label: `${before.label}: ${path}`, text: left }}
          after={{ label: `${after.label}: ${path}`, text: right }}
          isRust={path.endsWith('.rs')}
        />
      )}
    </div>
  );
}

/** Empty where there is no such file beside the code. */
function textIn({ source }: Side, path: string): string {
  return path === source.entry ? '' : (textAt(source, path) ?? '');
}

function FileHeading({ path }: { readonly path: string }) {
  return (
    <h2 class="mono small">
      <Visible text={path} isOneLine />
    </h2>
  );
}
