/** The part of a generated handler that parses form bodies, whose fields are text or files. */
import type { FormField, RequestBody } from '../openapi/document.js';
import type { BodyCode } from './request-body.js';
import type { RustConstants } from './rust-constants.js';
import { bodyStruct, type FieldSource, structFields } from './rust-struct.js';
import { stringLiteral } from './rust-text.js';
import { textCode } from './text-value.js';

/** A form is parsed into a struct when its fields are described; else the handler gets all fields. */
export function formBodyCode(
  body: RequestBody,
  kind: 'multipart' | 'urlencoded',
  constants: RustConstants,
): BodyCode {
  // Only a multipart form has files.
  const isFile = (field: FormField) => kind === 'multipart' && field.isFile;
  const all = (body.fields ?? []).map((field) => ({ ...field, isFile: isFile(field) }));
  const described = structFields(all);
  const open = kind === 'multipart' ? 'req.multipart()' : 'req.form()';
  if (described.fields.length === 0) return anyForm(body, kind, open);
  // The text of a multipart form is apart from its files.
  const variable = kind === 'multipart' ? 'fields' : 'form';
  const names = all.map(({ name }) => name);
  const codes = new Map(
    described.fields.map(({ described: field }) => [
      field,
      field.isFile ? fileField(field) : textField(field, variable, names, constants),
    ]),
  );
  const codeOf = (field: FormField) => codes.get(field) ?? fileField(field);
  const hasText = described.fields.some(({ described: field }) => !field.isFile);
  return {
    definition: [
      '/// The fields of the form.',
      '#[derive(Serialize)]',
      ...bodyStruct(described, codeOf),
      '',
      'impl Body {',
      '    fn read(req: &Request) -> Result<Body, HandlerError> {',
      `        let form = ${open}?;`,
      ...(kind === 'multipart' && hasText ? ['        let fields = form.pairs();'] : []),
      '        Ok(Body {',
      ...described.fields.map(
        ({ described: field, identifier }) => `            ${identifier}: ${codeOf(field).value},`,
      ),
      '        })',
      '    }',
      '}',
    ],
    statements: [
      body.required
        ? '    let body = Body::read(&req)?;'
        : '    let body = (!req.body_bytes().is_empty()).then(|| Body::read(&req)).transpose()?;',
    ],
    received: 'body',
    types: described.fields.map(({ described: field }) => codeOf(field).type),
  };
}

function anyForm({ required }: RequestBody, kind: 'multipart' | 'urlencoded', open: string): BodyCode {
  const isSent = kind === 'multipart' ? 'req.is_multipart()' : '(!req.body_bytes().is_empty())';
  const form = kind === 'multipart' ? 'form.pairs()' : 'form';
  return {
    definition: [],
    statements: [`    let form = ${required ? `${open}?` : `${isSent}.then(|| ${open}).transpose()?`};`],
    received: required || kind === 'urlencoded' ? form : 'form.map(|form| form.pairs())',
    types: [],
  };
}

interface FieldCode extends FieldSource {
  /** Expression for the field's value. */
  readonly value: string;
}

function textField(
  field: FormField,
  variable: string,
  names: readonly string[],
  constants: RustConstants,
): FieldCode {
  const others = names.filter((name) => name !== field.name);
  const { type, expression, note } = textCode(field, { kind: 'pairs', variable, others }, constants);
  return { type, value: expression, ...(note === undefined ? {} : { note }) };
}

function fileField({ name, required, type }: FormField): FieldCode {
  const key = stringLiteral(name);
  if (type === 'array') {
    const files = required ? `form.require_files_named(${key})?` : `form.files_named(${key})`;
    return { type: 'Vec<MultipartFile>', value: `${files}.into_iter().cloned().collect()` };
  }
  return {
    type: required ? 'MultipartFile' : 'Option<MultipartFile>',
    value: required ? `form.require_file(${key})?.clone()` : `form.file(${key}).cloned()`,
  };
}
