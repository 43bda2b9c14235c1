/**
 * The draft of an endpoint as it is being written. It stays in this tab of the browser until it is saved, through a
 * reload and an expired session, and knows when somebody else has changed the draft meanwhile.
 */
import { computed, type Signal, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { ApiError, call, type Diagnostic, get } from '../../api/client.js';
import { may, me } from '../../api/session.js';
import { storeInTab } from '../../base/tab-storage.js';
import type { Deployed, Endpoint } from '../../generated/routes.js';
import { changesOf, isSame, type Source, sourceOf } from './source.js';

/** What the compiler said of a source. */
export interface CheckedDraft {
  readonly source: Source;
  readonly diagnostics: readonly Diagnostic[];
  readonly hasFailed: boolean;
}

/** How saving ended: `changed` when it was not done, because somebody else has changed the draft. */
export type SaveResult = 'saved' | 'changed';

export class Draft {
  readonly written: Signal<Source>;
  /** What the API had when both were last the same. */
  readonly base: Signal<Source>;
  /** What the API has now, where somebody else has changed it and this was changed, too. */
  readonly theirs = signal<Source | undefined>(undefined);
  readonly checked = signal<CheckedDraft | undefined>(undefined);
  /** Counts how often what is written was replaced, not by typing. */
  readonly replaced = signal(0);
  /** Paths of the files that have a tab. */
  readonly opened = signal<readonly string[]>([]);
  readonly isDirty = computed(() => !isSame(this.written.value, this.base.value));
  #keeping: ReturnType<typeof setTimeout> | undefined;
  readonly #id: string;
  readonly #key: string;
  /** Answers that are older are from before the last change that was made here. */
  #changedAt: string;

  constructor(endpoint: Endpoint, key: string) {
    this.#id = endpoint.id;
    this.#key = key;
    this.#changedAt = endpoint.updated_at;
    const theirs = sourceOf(endpoint);
    const kept = readKept(key, theirs);
    this.written = signal(kept?.written ?? theirs);
    this.base = signal(kept?.base ?? theirs);
    this.follow(endpoint);
    this.written.subscribe(() => this.#keepSoon());
    this.base.subscribe(() => this.#keepSoon());
  }

  write(change: Partial<Source>): void {
    this.written.value = { ...this.written.peek(), ...change };
  }

  /** Writes what the editor does not know: files that come, go or get another path. */
  replace(source: Source): void {
    this.written.value = source;
    this.replaced.value++;
  }

  /** Takes what the API has, unless that would lose what is written here. */
  follow(endpoint: Endpoint): void {
    if (endpoint.updated_at < this.#changedAt) return;
    const latest = sourceOf(endpoint);
    if (isSame(latest, this.base.peek())) {
      this.theirs.value = undefined;
    } else if (!this.isDirty.peek() || isSame(latest, this.written.peek())) {
      this.#take(latest);
    } else {
      this.theirs.value = latest;
    }
  }

  /** Forgets what is written here. */
  discard(): void {
    this.#take(this.theirs.peek() ?? this.base.peek());
  }

  /** What is written here goes on from what somebody else has made: the next saving replaces that. */
  keepMine(): void {
    this.base.value = this.theirs.peek() ?? this.base.peek();
    this.theirs.value = undefined;
  }

  /** @throws ApiError */
  async save(): Promise<SaveResult> {
    if (!(await this.#isUnchanged())) return 'changed';
    if (!this.isDirty.peek()) return 'saved';
    const written = this.written.peek();
    const params = { id: this.#id };
    const { code, ...others } = changesOf(this.base.peek(), written);
    const isCodeOnly = code !== undefined && Object.keys(others).length === 0;
    const { data } = isCodeOnly
      ? await call('PUT /api/endpoints/{id}/code', { params, body: { code } })
      : await call('PUT /api/endpoints/{id}', {
          params,
          body: { ...(code !== undefined && { code }), ...others },
        });
    this.#hasChanged(data, written);
    return 'saved';
  }

  /**
   * Saves and compiles. What the compiler says is in `checked`.
   * @param update whether crates are resolved anew
   * @throws ApiError for all other failures
   */
  async compile(update = false): Promise<SaveResult> {
    if ((await this.save()) === 'changed') return 'changed';
    await this.#check(this.written.peek(), async () => {
      const body = { ...(update && { update }) };
      const { data } = await call('POST /api/endpoints/{id}/compile', { params: { id: this.#id }, body });
      return data.build_id;
    });
    return 'saved';
  }

  /**
   * Saves, compiles and starts in one.
   * @returns undefined when the compiler has refused it (`checked`), or `changed`
   * @throws ApiError for all other failures
   */
  async deploy(message: string, percent: number): Promise<Deployed | 'changed' | undefined> {
    if (!(await this.#isUnchanged())) return 'changed';
    const written = this.written.peek();
    const source = changesOf(this.base.peek(), written);
    const words = message.trim() !== '' && { message: message.trim() };
    let deployed: Deployed | undefined;
    await this.#check(written, async () => {
      const body = { ...source, ...words, percent };
      deployed = (await call('POST /api/endpoints/{id}/deploy', { params: { id: this.#id }, body })).data;
      return deployed.build_id;
    });
    const latest = await get('GET /api/endpoints/{id}', { params: { id: this.#id } });
    if (deployed) this.#hasChanged(latest, written);
    return deployed;
  }

  async #check(source: Source, build: () => Promise<string>): Promise<void> {
    try {
      const id = await build();
      // Warnings are in the build, which not everybody may see.
      const seen = may('builds:read') && (await get('GET /api/builds/{id}', { params: { id } }));
      this.checked.value = { source, diagnostics: seen ? seen.diagnostics : [], hasFailed: false };
    } catch (thrown) {
      if (!(thrown instanceof ApiError) || thrown.code !== 'compile_failed') throw thrown;
      this.checked.value = { source, diagnostics: thrown.diagnostics, hasFailed: true };
    }
  }

  async #isUnchanged(): Promise<boolean> {
    this.follow(await get('GET /api/endpoints/{id}', { params: { id: this.#id } }));
    return this.theirs.peek() === undefined;
  }

  /** The API has now what was written here; more may have been written since. */
  #hasChanged(answer: Endpoint, written: Source): void {
    this.#changedAt = answer.updated_at;
    this.base.value = written;
    this.follow(answer);
  }

  #take(source: Source): void {
    this.base.value = source;
    this.replace(source);
    this.theirs.value = undefined;
  }

  /** Not with each key: all files are in it. */
  #keepSoon(): void {
    this.#keeping ??= setTimeout(() => this.keep(), KEPT_AFTER_MS);
  }

  /** Keeps what is written through a reload. */
  keep(): void {
    clearTimeout(this.#keeping);
    this.#keeping = undefined;
    const kept: KeptDraft = { written: this.written.peek(), base: this.base.peek() };
    const text = this.isDirty.peek() ? JSON.stringify(kept) : '';
    if (text !== '') storeInTab(this.#key, text);
    else sessionStorage.removeItem(this.#key);
  }
}

const KEPT_AFTER_MS = 300;

interface KeptDraft {
  readonly written: Source;
  readonly base: Source;
}

/** @param theirs what the API has: a build of this page that knew no files has kept none */
function readKept(key: string, theirs: Source): KeptDraft | undefined {
  const text = sessionStorage.getItem(key);
  if (text === null) return undefined;
  const { written, base } = JSON.parse(text) as KeptDraft;
  return { written: { ...theirs, ...written }, base: { ...theirs, ...base } };
}

const drafts = new Map<string, Draft>();

/** The draft of an endpoint: the same for all parts of its page. */
export function draftOf(endpoint: Endpoint): Draft {
  const key = keyOf(endpoint);
  const draft = drafts.get(key) ?? new Draft(endpoint, key);
  drafts.set(key, draft);
  return draft;
}

// Who signs in next in this tab does not see it.
const keyOf = ({ id }: Endpoint) => `edge-draft:${me.value?.user?.id ?? ''}:${id}`;

/** Has the draft follow what the API has while the page of its endpoint is shown. */
export function useFollowedDraft(endpoint: Endpoint): Draft {
  const draft = draftOf(endpoint);
  const key = keyOf(endpoint);
  useEffect(() => draft.follow(endpoint), [draft, endpoint]);
  useEffect(
    () => () => {
      if (!draft.isDirty.peek()) drafts.delete(key);
    },
    [draft, key],
  );
  return draft;
}

addEventListener('pagehide', () => {
  for (const draft of drafts.values()) draft.keep();
});

/** A reload keeps what is written, closing the tab does not. */
addEventListener('beforeunload', (event) => {
  if ([...drafts.values()].some(({ isDirty }) => isDirty.peek())) event.preventDefault();
});
