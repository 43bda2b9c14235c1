/** How the editor looks: the colours of everything else, so that light and dark follow by themselves. */
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';

const highlight = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.self, tags.operatorKeyword], color: 'var(--accent)' },
  { tag: [tags.string, tags.character, tags.special(tags.string)], color: 'var(--ok)' },
  { tag: [tags.number, tags.bool, tags.escape, tags.atom], color: 'var(--warn)' },
  { tag: [tags.typeName, tags.className, tags.namespace], color: 'var(--code-type)' },
  { tag: [tags.macroName, tags.meta, tags.labelName], color: 'var(--code-macro)' },
  { tag: tags.function(tags.variableName), fontWeight: '600' },
  { tag: tags.propertyName, color: 'var(--text)' },
  { tag: tags.comment, color: 'var(--text-2)', fontStyle: 'italic' },
]);

const surface = { backgroundColor: 'var(--surface)', color: 'var(--text)' };

const look = EditorView.theme({
  '&': { backgroundColor: 'var(--code-bg)', color: 'var(--text)', fontSize: '13px' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '-1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--text)', padding: '8px 0' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': {
    ...{ backgroundColor: 'var(--code-bg)', color: 'var(--text-2)' },
    borderRight: '1px solid var(--border)',
  },
  '.cm-activeLine': { backgroundColor: 'var(--code-line)' },
  '.cm-activeLineGutter': { backgroundColor: 'var(--code-line)', color: 'var(--text)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--code-selection)',
  },
  '.cm-selectionMatch, .cm-searchMatch': { backgroundColor: 'var(--code-match)', outline: 'none' },
  '.cm-searchMatch-selected': { outline: '1px solid var(--warn)' },
  // Colours of the syntax would be too faint on it.
  '.cm-searchMatch span, .cm-selectionMatch span': { color: 'var(--text)' },
  '&.cm-focused .cm-matchingBracket': {
    ...{ backgroundColor: 'var(--code-selection)', color: 'inherit' },
  },
  '.cm-panels': { ...surface, borderBottom: '1px solid var(--border)' },
  '.cm-panel.cm-search': { padding: '8px', fontFamily: 'var(--font)' },
  '.cm-panel.cm-search label': { fontSize: 'var(--size-s)' },
  '.cm-textfield': {
    ...{ border: '1px solid var(--border-strong)', borderRadius: '5px', padding: '3px 8px' },
    ...{ backgroundColor: 'var(--surface)', color: 'var(--text)' },
  },
  '.cm-button': {
    ...{ border: '1px solid var(--border)', borderRadius: '5px', padding: '3px 8px' },
    ...{ backgroundImage: 'none', backgroundColor: 'var(--surface)', color: 'var(--text)' },
  },
  '.cm-tooltip': {
    ...surface,
    ...{ border: '1px solid var(--border)', borderRadius: '8px', boxShadow: 'var(--shadow)' },
    overflow: 'hidden',
  },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    ...{ backgroundColor: 'var(--accent)', color: 'var(--on-accent)' },
  },
  '.cm-diagnostic': { padding: '6px 12px', fontFamily: 'var(--font)', whiteSpace: 'pre-wrap' },
  '.cm-diagnosticAction': {
    ...{ backgroundColor: 'var(--accent)', color: 'var(--on-accent)', borderRadius: '5px' },
    padding: '2px 8px',
  },
  '.cm-changedLine': { backgroundColor: 'var(--ok-soft) !important' },
  '.cm-deletedChunk, &.cm-merge-a .cm-changedLine': { backgroundColor: 'var(--bad-soft) !important' },
  '.cm-changedText, &.cm-merge-b .cm-changedText': {
    background: 'color-mix(in srgb, var(--ok) 30%, transparent)',
  },
  '&.cm-merge-a .cm-changedText': { background: 'color-mix(in srgb, var(--bad) 30%, transparent)' },
  // Colours of the syntax would be too faint on it.
  '.cm-changedText span': { color: 'var(--text)' },
  '.cm-collapsedLines': { background: 'var(--surface-2)', color: 'var(--text-2)' },
});

const nonce = document.querySelector<HTMLMetaElement>('meta[name=edge-nonce]')?.content ?? '';

/** The theme of every editor: the content security policy lets it make its styles by the nonce only. */
export const theme: Extension = [EditorView.cspNonce.of(nonce), look, syntaxHighlighting(highlight)];
