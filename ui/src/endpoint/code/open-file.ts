/** Which file is open. It stands in the address, as does a place in it, so that links lead there. */
import { useEffect } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { useAddress } from '../../base/address.js';
import type { Buffers } from './buffers.js';
import type { Draft } from './draft.js';
import { contentAt } from './files.js';

export interface OpenFile {
  readonly path: string;
  /** What the address names, where there is no such file. */
  readonly missing: string | undefined;
  /** `?line=12&column=5` leads to a place, as that of a panic in the log; NaN or 0: it names none. */
  readonly line: number;
  readonly column: number;
  readonly hrefOf: (path: string) => string;
  readonly open: (path: string) => void;
}

export function useOpenFile(draft: Draft): OpenFile {
  const [query, change] = useAddress();
  const [page] = useLocation();
  const source = draft.written.value;
  const named = query.get('file') ?? source.entry;
  const isThere = contentAt(source, named) !== undefined;
  const path = isThere ? named : source.entry;
  const column = Number(query.get('column') ?? 1);
  useEffect(() => {
    const before = draft.opened.peek();
    if (!before.includes(path)) draft.opened.value = [...before, path];
  }, [draft, path]);
  return {
    ...{ path, missing: isThere ? undefined : named },
    ...{ line: Number(query.get('line')), column: column >= 1 ? column : 1 },
    hrefOf: (to) => (to === source.entry ? page : `${page}?${new URLSearchParams({ file: to })}`),
    open: (to) => {
      // The path of the code is not needed there, and may be another one now.
      const file = to === draft.written.peek().entry ? undefined : to;
      change({ file, line: undefined, column: undefined });
    },
  };
}

/** @param buffers undefined until they are there, which can be after the first effects of the tab */
export function useLinkedPlace(
  buffers: Buffers | undefined,
  { path, missing, line, column }: OpenFile,
): void {
  useEffect(() => {
    if (buffers && missing === undefined && line >= 1) buffers.goToLine(path, line, column);
  }, [buffers, path, missing, line, column]);
}
