/** What is wrong with a folder, all at once. */
import { AppError } from '../../errors.js';

/** So many are shown; the others are counted. */
const SHOWN = 100;
const SHOWN_CHARACTERS = 1_000;

/** @param problems each with its place: `edge.yaml:12: ...` */
export function folderError(problems: readonly string[], cause?: unknown): AppError {
  const shown = problems
    .slice(0, SHOWN)
    .map((problem) =>
      problem.length > SHOWN_CHARACTERS ? `${problem.slice(0, SHOWN_CHARACTERS)}…` : problem,
    );
  const more = problems.length - shown.length;
  const lines = [...shown, ...(more > 0 ? [`and ${more} more`] : [])];
  const details = { problems: shown, count: problems.length };
  return new AppError('invalid_folder', lines.join('\n'), { details }, { cause });
}
