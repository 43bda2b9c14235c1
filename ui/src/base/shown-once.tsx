/** A dialog with a secret that is shown once: only its button closes it. */
import { Button } from './controls.js';
import { CopyField } from './copy.js';
import { Dialog } from './dialog.js';

interface ShownOnceProps {
  readonly title: string;
  readonly label: string;
  readonly value: string;
  readonly hint: string;
  readonly onClose: () => void;
}

export function ShownOnce({ title, label, value, hint, onClose }: ShownOnceProps) {
  return (
    <Dialog title={title} isWide losesNothing onClose={() => undefined}>
      <CopyField label={label} value={value} hint={hint} />
      <footer>
        <Button look="primary" onClick={onClose}>
          I have copied it
        </Button>
      </footer>
    </Dialog>
  );
}
