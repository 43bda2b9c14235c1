/** Messages of the compiler, as they are stored and as the API shows them. */
import { type Static, type TSchema, Type } from '@sinclair/typebox';

const orNull = <T extends TSchema>(schema: T, description: string) =>
  Type.Union([schema, Type.Null()], { description });

/** Part of the handler's own source. */
export const SourceRange = Type.Object({
  file: Type.Optional(
    Type.String({ description: 'Its path in the source; left out by builds of earlier versions: the code' }),
  ),
  line: Type.Integer({ description: 'From 1' }),
  column: Type.Integer({ description: 'From 1, in Unicode code points: a tab is one' }),
  end_line: Type.Integer(),
  end_column: Type.Integer({ description: 'Of the first character behind it' }),
});
export type SourceRange = Static<typeof SourceRange>;

const Label = Type.Object({
  ...SourceRange.properties,
  text: orNull(Type.String(), 'null where the message itself says it'),
  is_primary: Type.Boolean({
    description: 'True for where the mistake is, false for what has to do with it',
  }),
});

const Suggestion = Type.Object({
  message: Type.String(),
  applicability: orNull(
    Type.String(),
    '`MachineApplicable`: certainly what was meant; `MaybeIncorrect`; `HasPlaceholders`: to be filled in; `Unspecified`',
  ),
  edits: Type.Array(Type.Object({ ...SourceRange.properties, replacement: Type.String() }), {
    description: 'All of them together; none where something else than the source has to be changed',
  }),
});
export type Suggestion = Static<typeof Suggestion>;

export const Diagnostic = Type.Object(
  {
    level: Type.String({ description: '`error`, `warning`, `note` or `help`' }),
    code: orNull(Type.String(), 'Such as `E0425`, or the name of a lint'),
    message: Type.String(),
    file: Type.Optional(
      orNull(
        Type.String(),
        "The file of the handler's own source; left out by builds of earlier versions: the code",
      ),
    ),
    line: orNull(
      Type.Integer(),
      "Where it is in the handler's own source, from 1; null when it is elsewhere",
    ),
    column: orNull(Type.Integer(), 'From 1, in Unicode code points: a tab is one'),
    end_line: orNull(Type.Integer(), 'Where it ends'),
    end_column: orNull(Type.Integer(), 'Of the first character behind it'),
    labels: Type.Array(Label, { description: "Parts of the handler's own source that the message is about" }),
    suggestions: Type.Array(Suggestion, {
      description: "Changes of the handler's own source, or of its dependencies",
    }),
    rendered: Type.String({ description: 'As a terminal shows it, without colour' }),
  },
  { title: 'Diagnostic' },
);
export type Diagnostic = Static<typeof Diagnostic>;
