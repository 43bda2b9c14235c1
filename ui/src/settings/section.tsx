import type { ComponentChildren } from 'preact';

interface SectionProps {
  readonly title: string;
  readonly hint?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

/** A card with a title, and a sentence that says what it is for. */
export function Section({ title, hint, actions, children }: SectionProps) {
  return (
    <section class="card section" aria-label={title}>
      <header>
        <div>
          <h2>{title}</h2>
          {hint !== undefined && <p class="small muted">{hint}</p>}
        </div>
        {actions !== undefined && <div class="actions">{actions}</div>}
      </header>
      <div class="section-body stack">{children}</div>
    </section>
  );
}
