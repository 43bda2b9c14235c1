/**
 * Where keys go when what had the focus is no more, such as a row that was deleted or the link to this page: to the page
 * itself, instead of to nothing.
 */
let last: Element | null = null;

/** Call it before anything is shown. */
export function followFocus(): void {
  addEventListener('focusin', () => {
    last = document.activeElement;
  });
  new MutationObserver(() => {
    if (last === null || last.isConnected) return;
    last = null;
    if (isNowhere() && !document.querySelector('dialog[open]')) main()?.focus({ preventScroll: true });
  }).observe(document.body, { subtree: true, childList: true });
}

/** Gives it back to what had it before, unless it has gone somewhere else since. */
export function giveFocusBack(before: Element | null): void {
  if (!isNowhere() || !(before instanceof HTMLElement)) return;
  if (before.isConnected) before.focus();
  else main()?.focus({ preventScroll: true });
}

const main = () => document.getElementById('main');
const isNowhere = () => document.activeElement === document.body || document.activeElement === main();
