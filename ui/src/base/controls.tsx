/** Buttons and fields. */
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { failed } from './toasts.js';

type ButtonLook = 'primary' | 'danger' | 'plain' | 'normal';

interface ButtonProps {
  readonly children: ComponentChildren;
  /** While what it returns goes on, the button cannot be pressed; its failure is shown. */
  readonly onClick?: (event: MouseEvent) => unknown;
  readonly look?: ButtonLook;
  readonly isSmall?: boolean;
  readonly isSubmit?: boolean;
  readonly isDisabled?: boolean;
  /** The label of what has only an icon. */
  readonly label?: string;
}

export function Button({
  children,
  onClick,
  look = 'normal',
  isSmall,
  isSubmit,
  isDisabled,
  label,
}: ButtonProps) {
  const [isBusy, setBusy] = useState(false);
  const press = async (event: MouseEvent) => {
    const going = onClick?.(event);
    if (!(going instanceof Promise)) return;
    setBusy(true);
    await going.catch(failed);
    setBusy(false);
  };
  return (
    <button
      type={isSubmit ? 'submit' : 'button'}
      class={`button ${look}${isSmall ? ' small' : ''}`}
      disabled={isDisabled === true || isBusy}
      aria-busy={isBusy}
      aria-label={label}
      title={label}
      onClick={(event) => void press(event)}
    >
      {children}
    </button>
  );
}

interface FieldProps {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  /** What the API, or the form, says of the value. */
  readonly problem?: string | undefined;
  readonly children: (attributes: FieldAttributes) => ComponentChildren;
}

interface FieldAttributes {
  readonly id: string;
  readonly 'aria-describedby': string;
  readonly 'aria-invalid': boolean;
}

/** A label, a control, and what is said of it. */
export function Field({ label, hint, problem, children }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': `${id}-hint`, 'aria-invalid': problem !== undefined })}
      <div id={`${id}-hint`}>
        {problem !== undefined && <div class="problem">{problem}</div>}
        {hint !== undefined && <div class="hint">{hint}</div>}
      </div>
    </div>
  );
}

interface TextProps extends Omit<FieldProps, 'children'> {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: 'text' | 'email' | 'password' | 'number' | 'search' | 'url' | 'datetime-local';
  readonly autocomplete?: string;
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly autofocus?: boolean;
  readonly min?: number;
  readonly max?: number;
}

/** A line of text. */
export function TextField({ label, hint, problem, value, onInput, type = 'text', ...rest }: TextProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(attributes) => (
        <input
          class="input"
          spellcheck={false}
          {...rest}
          {...attributes}
          // The types of Preact have one member for each kind of input.
          type={type as 'text'}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

type AreaProps = Omit<FieldProps, 'children'> & {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly rows?: number;
  readonly placeholder?: string;
};

/** Some lines of text. */
export function TextArea({ label, hint, problem, value, onInput, ...rest }: AreaProps) {
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(attributes) => (
        <textarea
          class="input mono"
          spellcheck={false}
          {...rest}
          {...attributes}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface SelectProps<T extends string> extends Omit<FieldProps, 'children'> {
  readonly value: T;
  readonly options: readonly (T | { readonly value: T; readonly label: string })[];
  readonly onChange: (value: T) => void;
}

/** One of some values. */
export function SelectField<T extends string>({ label, hint, problem, ...rest }: SelectProps<T>) {
  const { value, options, onChange } = rest;
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(attributes) => (
        <select
          class="input"
          {...attributes}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value as T)}
        >
          {options.map((option) => {
            const one = typeof option === 'string' ? { value: option, label: option } : option;
            return (
              <option key={one.value} value={one.value}>
                {one.label}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

interface CheckProps {
  readonly label: ComponentChildren;
  readonly hint?: ComponentChildren;
  readonly isChecked: boolean;
  readonly onChange: (isChecked: boolean) => void;
  readonly isDisabled?: boolean;
}

/** Yes or no. */
export function Check({ label, hint, isChecked, onChange, isDisabled }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={isChecked}
        disabled={isDisabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>
        {label}
        {hint !== undefined && <span class="muted small"> {hint}</span>}
      </span>
    </label>
  );
}
