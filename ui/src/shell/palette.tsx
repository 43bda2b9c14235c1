/** Goes to any page or object, or does something, by typing part of its name. */
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { useQuery } from '../api/query.js';
import { may, type Permission } from '../api/session.js';
import { Dialog } from '../base/dialog.js';
import { useDebounced } from '../base/use-debounced.js';
import { Visible } from '../base/visible.js';
import {
  type Choice,
  collectionChoice,
  domainChoice,
  fixedChoices,
  routeChoice,
  serviceChoice,
} from './choices.js';

const isOpen = signal(false);
export const openPalette = () => {
  isOpen.value = true;
};

/** Most objects that are shown of each kind. */
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
      losesNothing
      onClose={() => {
        isOpen.value = false;
      }}
    >
      <Search />
    </Dialog>
  );
}

function Search() {
  const [text, setText] = useState('');
  /** Where the chosen one leads; undefined: the first. */
  const [chosen, choose] = useState<string>();
  /** Whether Enter was pressed before the answer was there for what is typed. */
  const [isAwaited, setAwaited] = useState(false);
  const [location, navigate] = useLocation();
  const search = useDebounced(text.trim(), SETTLED_AFTER_MS);
  const canSearch = search !== '' && may('endpoints:read');
  const results = useQuery(
    'GET /api/overview/endpoints',
    canSearch ? { query: { search, limit: MOST_SHOWN } } : undefined,
  );
  const objects = { query: { search, limit: MOST_SHOWN } };
  const askedFor = (permission: Permission) => (search !== '' && may(permission) ? objects : undefined);
  const services = useQuery('GET /api/services', askedFor('services:read'));
  const domains = useQuery('GET /api/domains', askedFor('domains:read'));
  const collections = useQuery('GET /api/collections', may('collections:read') ? {} : undefined);
  const url = urlOf(search);
  const routed = useQuery(
    'GET /api/route',
    url && may('endpoints:read') ? { query: { host: url.host, path: url.pathname } } : undefined,
  );
  const isPending = search !== text.trim() || (canSearch && results.data === undefined && !results.error);

  const words = text.trim().toLowerCase();
  const choices: readonly Choice[] = [
    ...fixedChoices(location).filter(({ name, also = '', kind }) =>
      words === '' ? kind !== 'Command' : `${name} ${also}`.toLowerCase().includes(words),
    ),
    ...(url && routed.data?.match ? [routeChoice(routed.data.match)] : []),
    ...(canSearch ? (results.data ?? []) : []).map(({ id, method, domain, route, name }) => ({
      key: `/ui/endpoints/${id}`,
      name: `${method} ${domain === '*' ? '' : domain}${route}`,
      ...(name !== route && { also: name }),
      to: `/ui/endpoints/${id}`,
      kind: 'Endpoint',
    })),
    ...(search === '' ? [] : (services.data ?? [])).map(serviceChoice),
    ...(search === '' ? [] : (domains.data ?? [])).map(domainChoice),
    ...(search === '' ? [] : (collections.data ?? []))
      .filter(({ name }) => name.toLowerCase().includes(words))
      .slice(0, MOST_SHOWN)
      .map(collectionChoice),
  ].slice(0, 3 * MOST_SHOWN);
  // What is found meanwhile moves the others: the chosen one stays chosen.
  const current = Math.max(
    0,
    choices.findIndex(({ key }) => key === chosen),
  );

  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: 'nearest' });
  }, [current, chosen]);

  const go = (choice: Choice | undefined) => {
    if (!choice) return;
    isOpen.value = false;
    if (choice.to !== undefined) navigate(choice.to);
    choice.run?.();
  };
  /** Endpoints that are shown may still be those for what was typed before. */
  const enter = () => {
    const choice = choices[current];
    if (isPending && choice?.kind !== 'Page' && choice?.key !== chosen) setAwaited(true);
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
    else choose(choices[(current + step + choices.length) % Math.max(1, choices.length)]?.key);
  };
  return (
    <>
      <input
        class="input"
        role="combobox"
        aria-label="Search pages, endpoints and commands"
        aria-expanded="true"
        aria-controls="palette-choices"
        aria-activedescendant={choices[current] && `palette-${current}`}
        placeholder="A page, a host, a path, a name, a command"
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
      <div ref={list} id="palette-choices" role="listbox" aria-label="Results">
        {choices.map((choice, index) => (
          // Chosen with the keys of the field above, which keeps the focus.
          <div
            key={choice.key}
            id={`palette-${index}`}
            class="choice"
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onMouseDown={() => go(choice)}
          >
            <span class="name-of">
              <Visible text={choice.name} isOneLine />{' '}
              {choice.kind === 'Endpoint' && choice.also !== undefined && (
                <span class="muted">
                  <Visible text={choice.also} isOneLine />
                </span>
              )}
            </span>
            <span class="small muted">{choice.kind}</span>
          </div>
        ))}
      </div>
      {choices.length === 0 && !isPending && (
        <p class="muted">
          {url && routed.data?.reason ? (
            <>
              No handler answers a GET of this: <Visible text={routed.data.reason} isOneLine />
            </>
          ) : (
            'Nothing has this in its name.'
          )}
        </p>
      )}
    </>
  );
}

/** A URL whose endpoint one looks for. */
function urlOf(text: string): URL | undefined {
  return /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : undefined;
}
