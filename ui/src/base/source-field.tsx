/** A text or a ZIP: dropped, chosen, or pasted. */
import { Button, TextArea } from './controls.js';
import { Drop } from './drop.js';
import { bytes } from './text.js';
import { failed } from './toasts.js';
import { Visible } from './visible.js';

/** What is asked for. */
export interface SourceWords {
  /** Label of the place where files are dropped. */
  readonly dropLabel: string;
  /** Said there. */
  readonly drop: string;
  readonly textLabel: string;
  readonly hint: string;
  readonly placeholder: string;
  /** Endings of files. */
  readonly accept: string;
}

interface SourceFieldProps {
  readonly words: SourceWords;
  readonly text: string;
  readonly bundle: File | undefined;
  /** What the API says of the text. */
  readonly problem: string | undefined;
  readonly onText: (text: string) => void;
  readonly onBundle: (file: File | undefined) => void;
}

/** The beginning of every ZIP. */
const ZIP_MAGIC = 'PK';

export function SourceField({ words, text, bundle, problem, onText, onBundle }: SourceFieldProps) {
  const take = async (file: File) => {
    if ((await file.slice(0, ZIP_MAGIC.length).text()) === ZIP_MAGIC) onBundle(file);
    else if (file.size === 0) throw new Error(`${file.name} is empty.`);
    else onText(await file.text());
  };
  return (
    <>
      <Drop
        label={words.dropLabel}
        action="Choose a file"
        accept={words.accept}
        onFiles={([file]) => {
          if (file) take(file).catch(failed);
        }}
      >
        {bundle ? (
          <span>
            <strong>
              <Visible text={bundle.name} isOneLine />
            </strong>{' '}
            <span class="muted">{bytes(bundle.size)}</span>{' '}
            <Button isSmall look="plain" onClick={() => onBundle(undefined)}>
              Remove
            </Button>
          </span>
        ) : (
          <span class="muted">{words.drop}</span>
        )}
      </Drop>
      {!bundle && (
        <TextArea
          label={words.textLabel}
          hint={words.hint}
          problem={problem}
          rows={text === '' ? 5 : 12}
          value={text}
          onInput={onText}
          placeholder={words.placeholder}
        />
      )}
    </>
  );
}
