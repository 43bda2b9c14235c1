/** A button that opens a list of things to do. */
import { useId, useRef } from 'preact/hooks';
import { Link } from 'wouter-preact';

export type MenuItem =
  | { readonly label: string; readonly to: string }
  | { readonly label: string; readonly onClick: () => void; readonly isDangerous?: boolean };

/** @param label what the button is for, which has only dots */
export function Menu({ label, items }: { readonly label: string; readonly items: readonly MenuItem[] }) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  if (items.length === 0) return null;
  const place = () => {
    const [anchor, shown] = [button.current?.getBoundingClientRect(), menu.current];
    if (!anchor || !shown) return;
    const isLow = anchor.bottom + shown.offsetHeight + 4 > innerHeight;
    shown.style.top = `${isLow ? anchor.top - shown.offsetHeight - 4 : anchor.bottom + 4}px`;
    shown.style.left = `${Math.max(8, anchor.right - shown.offsetWidth)}px`;
    // This comes some time after it was opened: by then a key may have chosen another one.
    if (!shown.contains(document.activeElement)) shown.querySelector<HTMLElement>('[role=menuitem]')?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const shown = [...(menu.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = shown.indexOf(document.activeElement as HTMLElement);
    shown[(at + step + shown.length) % shown.length]?.focus();
  };
  return (
    <>
      <button
        ref={button}
        type="button"
        class="button plain small icon"
        popovertarget={id}
        aria-haspopup="menu"
        aria-label={label}
        title={label}
      >
        ⋯
      </button>
      <div
        ref={menu}
        id={id}
        popover="auto"
        class="menu"
        role="menu"
        tabIndex={-1}
        aria-label={label}
        onToggle={(event) => {
          if (event.newState === 'open') place();
        }}
        onKeyDown={onKeyDown}
      >
        {items.map((item) =>
          'to' in item ? (
            <Link key={item.label} href={item.to} role="menuitem">
              {item.label}
            </Link>
          ) : (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              class={item.isDangerous ? 'danger' : ''}
              onClick={() => {
                menu.current?.hidePopover();
                item.onClick();
              }}
            >
              {item.label}
            </button>
          ),
        )}
      </div>
    </>
  );
}
