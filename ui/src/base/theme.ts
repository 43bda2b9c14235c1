/** Light, dark, or as the system: kept in this browser. */
import { computed, effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'edge-theme';
const system = matchMedia('(prefers-color-scheme: dark)');
const systemIsDark = signal(system.matches);
system.addEventListener('change', () => {
  systemIsDark.value = system.matches;
});

export const theme = signal<Theme>(read());

/** What is shown. */
export const shownTheme = computed<'light' | 'dark'>(() =>
  theme.value === 'dark' || (theme.value === 'system' && systemIsDark.value) ? 'dark' : 'light',
);

effect(() => {
  document.documentElement.dataset['theme'] = shownTheme.value;
});

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen;
  localStorage.setItem(KEY, chosen);
}

function read(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === 'light' || kept === 'dark' ? kept : 'system';
}
