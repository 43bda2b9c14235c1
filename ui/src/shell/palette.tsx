/** Goes to any page or endpoint by typing part of its name. */
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Dialog } from '../base/dialog.js';
import { useSettled } from '../base/settled.js';
import { visiblePlaces } from './places.js';

const isOpen = signal(false);
export const openPalette = () => {
  isOpen.value = true;
};

/** Of each kind. */
const MOST_SHOWN = 8;
const SETTLED_AFTER_MS = 150;

export function Palette() {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      isOpen.value = !isOpen.value;
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  if (!isOpen.value) return null;
  return (
    <Dialog
      title="Go to"
      onClose={() => {
        isOpen.value = false;
      }}
    >
      <Search />
    </Dialog>
  );
}

interface Choice {
  readonly to: string;
  readonly name: string;
  readonly kind: string;
}

function Search() {
  const [text, setText] = useState('');
  /** Where the chosen one leads; undefined: the first. */
  const [chosen, choose] = useState<string>();
  /** Whether Enter was pressed before the answer was there for what is typed. */
  const [isAwaited, setAwaited] = useState(false);
  const [, navigate] = useLocation();
  const search = useSettled(text.trim(), SETTLED_AFTER_MS);
  const canSearch = search !== '' && may('endpoints:read');
  const found = useQuery(
    'GET /api/overview/endpoints',
    canSearch ? { query: { search, limit: MOST_SHOWN } } : undefined,
  );
  const isPending = search !== text.trim() || (canSearch && found.data === undefined && !found.error);

  const words = text.toLowerCase();
  const choices: Choice[] = [
    ...visiblePlaces()
      .filter(({ name, also = '' }) => `${name} ${also}`.toLowerCase().includes(words))
      .map(({ name, to }) => ({ name, to, kind: 'Page' })),
    ...(canSearch ? (found.data ?? []) : []).map(({ id, method, domain, route }) => ({
      name: `${method} ${domain}${route}`,
      to: `/ui/endpoints/${id}`,
      kind: 'Endpoint',
    })),
  ].slice(0, 2 * MOST_SHOWN);
  // What is found meanwhile moves the others: the chosen one stays chosen.
  const current = Math.max(
    0,
    choices.findIndex(({ to }) => to === chosen),
  );

  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: 'nearest' });
  }, [current, chosen]);

  const go = (choice: Choice | undefined) => {
    if (!choice) return;
    isOpen.value = false;
    navigate(choice.to);
  };
  /** Endpoints that are shown may still be those for what was typed before. */
  const enter = () => {
    const choice = choices[current];
    if (isPending && choice?.kind !== 'Page' && choice?.to !== chosen) setAwaited(true);
    else go(choice);
  };
  useEffect(() => {
    if (isAwaited && !isPending) go(choices[current]);
    if (!isPending) setAwaited(false);
  }, [isAwaited, isPending]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined && event.key !== 'Enter') return;
    event.preventDefault();
    if (step === undefined) enter();
    else choose(choices[(current + step + choices.length) % Math.max(1, choices.length)]?.to);
  };
  return (
    <>
      <input
        class="input"
        role="combobox"
        aria-label="Search pages and endpoints"
        aria-expanded="true"
        aria-controls="palette-choices"
        aria-activedescendant={choices[current] && `palette-${current}`}
        placeholder="A page, a host, a path, a name"
        autofocus
        spellcheck={false}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          choose(undefined);
          setAwaited(false);
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} id="palette-choices" role="listbox" aria-label="Found">
        {choices.map((choice, index) => (
          // Chosen with the keys of the field above, which keeps the focus.
          <div
            key={choice.to}
            id={`palette-${index}`}
            class="choice"
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onMouseDown={() => go(choice)}
          >
            <span class="name-of">{choice.name}</span>
            <span class="small muted">{choice.kind}</span>
          </div>
        ))}
      </div>
      {choices.length === 0 && !isPending && <p class="muted">Nothing has this in its name.</p>}
    </>
  );
}
