/** Opens dialogs. Most are questions by description: whether something is to be done, what has to be typed for it. */
import { signal } from '@preact/signals';
import { type ComponentChildren, type ComponentProps, Fragment } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { useLocation } from 'wouter-preact';
import { ConcealedField } from './concealed-field.js';
import { TextArea, TextField } from './controls.js';
import { FormDialog } from './dialog.js';
import type { ProblemAt } from './form.js';

interface Question<N extends string = string> {
  readonly title: string;
  /** What the button says that does it. */
  readonly action: string;
  readonly isDangerous?: boolean;
  /** What becomes of it; a component where that has to be read first. */
  readonly text?: ComponentChildren;
  /** What is typed for it, by name. */
  readonly fields?: Readonly<Record<N, QuestionField>>;
  run(typed: Readonly<Record<N, string>>): Promise<unknown>;
}

interface QuestionField extends Omit<ComponentProps<typeof TextField>, 'value' | 'onInput' | 'problem'> {
  readonly label: string;
  /** `lines`: some lines of text; `concealed`: the same, not legible. */
  readonly as?: 'lines' | 'concealed';
  /** The button waits for it. */
  readonly isAwaited?: boolean;
  /** Where the API says what is wrong with it; in the body unless given. */
  readonly place?: string;
}

type MakeDialog = (onClose: () => void) => ComponentChildren;
/** The last is above the others. */
const opened = signal<readonly { readonly id: number; readonly make: MakeDialog }[]>([]);
let lastId = 0;

/** Opens a dialog of its own making, above those that are open. */
export function openDialog(make: MakeDialog): void {
  opened.value = [...opened.value, { id: ++lastId, make }];
}

/** Asks in a dialog, which closes when it is done. */
export function ask<N extends string = never>(question: Question<N>): void {
  openDialog((onClose) => <QuestionDialog question={question as Question} onClose={onClose} />);
}

/** The dialogs that are open. They belong to the page that opened them. */
export function OpenedDialogs() {
  const [path] = useLocation();
  useLayoutEffect(() => {
    opened.value = [];
  }, [path]);
  const close = (closed: number) => {
    opened.value = opened.value.filter(({ id }) => id !== closed);
  };
  return (
    <>
      {opened.value.map(({ id, make }) => (
        <Fragment key={id}>{make(() => close(id))}</Fragment>
      ))}
    </>
  );
}

interface QuestionDialogProps {
  readonly question: Question;
  readonly onClose: () => void;
}

function QuestionDialog({ question: { text, fields = {}, run, ...dialog }, onClose }: QuestionDialogProps) {
  const names = Object.keys(fields);
  const [typed, setTyped] = useState(() => Object.fromEntries(names.map((name) => [name, ''])));
  const isMissing = names.some((name) => fields[name]?.isAwaited && typed[name] === '');
  return (
    <FormDialog {...dialog} isDisabled={isMissing} onClose={onClose} onSubmit={() => run(typed)}>
      {(problemAt) => (
        <>
          {typeof text === 'string' ? <p>{text}</p> : text}
          {Object.entries(fields).map(([name, field]) => (
            <OneField
              key={name}
              field={{ place: `body.${name}`, ...field }}
              value={typed[name] ?? ''}
              problemAt={problemAt}
              onInput={(value) => setTyped((before) => ({ ...before, [name]: value }))}
            />
          ))}
        </>
      )}
    </FormDialog>
  );
}

interface OneFieldProps {
  readonly field: QuestionField & { readonly place: string };
  readonly value: string;
  readonly problemAt: ProblemAt;
  readonly onInput: (value: string) => void;
}

function OneField({
  field: { as, isAwaited: _, place, ...field },
  value,
  problemAt,
  onInput,
}: OneFieldProps) {
  const input = { label: field.label, hint: field.hint, value, onInput, problem: problemAt(place) };
  if (as === 'lines') return <TextArea {...input} rows={6} />;
  return as === 'concealed' ? <ConcealedField {...input} /> : <TextField {...field} {...input} />;
}
