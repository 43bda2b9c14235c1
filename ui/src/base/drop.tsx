/** A place where files are dropped, or chosen. */
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { Button } from './controls.js';

interface DropProps {
  readonly onFiles: (files: readonly File[]) => void;
  readonly isMultiple?: boolean;
  readonly accept?: string;
  /** What the button says that opens the browser's dialog. */
  readonly action: string;
  readonly label: string;
  readonly children: ComponentChildren;
}

export function Drop({ onFiles, isMultiple, accept, action, label, children }: DropProps) {
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const take = (files: FileList | null | undefined) => {
    const given = [...(files ?? [])];
    if (given.length > 0) onFiles(isMultiple ? given : given.slice(0, 1));
  };
  return (
    <fieldset
      aria-label={label}
      class={`drop${isOver ? ' over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer?.files);
      }}
    >
      {children}
      <input
        ref={input}
        type="file"
        class="visually-hidden"
        tabIndex={-1}
        aria-label={action}
        multiple={isMultiple === true}
        accept={accept}
        onChange={({ currentTarget }) => {
          take(currentTarget.files);
          // The same file can be chosen again.
          currentTarget.value = '';
        }}
      />
      <Button onClick={() => input.current?.click()}>{action}</Button>
    </fieldset>
  );
}
