/** What this tab keeps for a reload, as far as there is room: the storage of a tab has 5 MB for all. */
import { warned } from './toasts.js';

let isSaid = false;

/** Keeps a text. Where there is no room for it, that is said once, and what was kept of it before is gone. */
export function storeInTab(key: string, text: string): void {
  try {
    sessionStorage.setItem(key, text);
  } catch {
    // An older text would come back in place of this one.
    sessionStorage.removeItem(key);
    if (!isSaid) warned('The browser has no room for what you write: save it before you reload the page.');
    isSaid = true;
  }
}
