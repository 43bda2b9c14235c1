/**
 * The queue dashboard in the colours of this page. It is a page of its own, of this origin: it reads its settings once,
 * when it starts, and marks its body when it is dark.
 */
const SETTINGS = 'board-settings';
const DARK = 'dark-mode';

/** Keeps the theme for a dashboard that starts from now on, here or in a window of its own. */
export function storeDashboardTheme(theme: 'light' | 'dark'): void {
  const kept = stored();
  const state = { ...(kept['state'] as object | undefined), theme };
  localStorage.setItem(SETTINGS, JSON.stringify({ version: 2, ...kept, state }));
}

/** Sets the theme of the dashboard that is shown. */
export function showDashboardTheme(frame: HTMLIFrameElement | null, theme: 'light' | 'dark'): void {
  frame?.contentDocument?.body.classList.toggle(DARK, theme === 'dark');
}

function stored(): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(localStorage.getItem(SETTINGS) ?? '{}') ?? {}) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}
