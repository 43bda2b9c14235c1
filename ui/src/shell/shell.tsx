/** What stands around every page: where one can go, who one is, and what is wrong with the connection. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { connection, isOutdated } from '../api/live.js';
import { me, signOut } from '../api/session.js';
import { Button } from '../base/controls.js';
import { chooseTheme, type Theme, theme } from '../base/theme.js';
import { Logo } from './logo.js';
import { openPalette, Palette } from './palette.js';
import { isCurrent, visiblePlaces } from './places.js';

export function Shell({ children }: { readonly children: ComponentChildren }) {
  const [location] = useLocation();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [location]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape') setOpen(false);
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <header class="top">
        <button
          type="button"
          class="button icon plain"
          aria-label="Menu"
          aria-expanded={isOpen}
          onClick={() => setOpen(!isOpen)}
        >
          ☰
        </button>
        Edge Gateway
      </header>
      {/* With a finger, there is no Escape; the menu lies over its button. */}
      {isOpen && <div class="beside" aria-hidden="true" onClick={() => setOpen(false)} />}
      <aside class={`side${isOpen ? ' open' : ''}`} aria-label="Menu">
        <Link href="/ui" class="brand">
          <Logo /> Edge Gateway
        </Link>
        <button type="button" class="button palette-button" onClick={openPalette}>
          Go to … <kbd>Ctrl K</kbd>
        </button>
        <nav aria-label="Pages">
          {visiblePlaces().map((place) => (
            <Link
              key={place.to}
              href={place.to}
              aria-current={isCurrent(place, location) ? 'page' : undefined}
            >
              {place.name}
            </Link>
          ))}
        </nav>
        <Account />
      </aside>
      <div>
        {connection.value === 'lost' && (
          <div class="banner" role="status">
            The connection to the gateway is lost. What you see may be old; it is read again as soon as it is
            back.
          </div>
        )}
        {isOutdated.value && (
          <div class="banner" role="status">
            The gateway has a new version of this page.{' '}
            <Button isSmall onClick={() => window.location.reload()}>
              Reload
            </Button>
          </div>
        )}
        {children}
      </div>
      <Palette />
    </div>
  );
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ['system', 'As the system'],
  ['light', 'Light'],
  ['dark', 'Dark'],
];

function Account() {
  const { user, kind } = me.value ?? {};
  return (
    <div class="foot">
      <label class="small muted" for="theme">
        Colours
      </label>
      <select
        id="theme"
        class="input"
        value={theme.value}
        onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}
      >
        {THEMES.map(([value, label]) => (
          <option key={value} value={value}>
            {label}
          </option>
        ))}
      </select>
      {user ? (
        <>
          <Link href="/ui/access/account" class="truncate small" title={user.email}>
            {user.name || user.email}
          </Link>
          <Button isSmall onClick={signOut}>
            Sign out
          </Button>
        </>
      ) : (
        kind === 'anonymous' && <span class="small muted">Open: nobody has to sign in on this machine.</span>
      )}
    </div>
  );
}
