/** Many short texts of one kind, such as warnings. */
import type { ComponentChildren } from 'preact';
import { count, type Tone } from './text.js';
import { Visible } from './visible.js';

/** More are folded at first. */
const SHOWN = 12;

interface TextsProps {
  readonly tone: Tone;
  readonly title: string;
  readonly texts: readonly string[];
  /** What can be done about them. */
  readonly children?: ComponentChildren;
}

export function Texts({ tone, title, texts, children }: TextsProps) {
  return (
    <details class={`notice texts ${tone}`} open={texts.length <= SHOWN}>
      <summary>
        {title} ({count(texts.length)})
      </summary>
      <ul class="scroll-list">
        {texts.map((text, at) => (
          <li key={at}>
            <Visible text={text} />
          </li>
        ))}
      </ul>
      {children}
    </details>
  );
}
