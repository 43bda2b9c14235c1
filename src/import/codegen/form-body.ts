/** The part of a generated handler that parses form bodies, whose fields are text or files. */
import type { FormField, RequestBody } from '../openapi/document.js';
import type { BodyCode } from './request-body.js';
import type { Helper } from './rust-helpers.js';
import { bodyStruct, type FieldSource, structFields } from './rust-struct.js';
import { stringLiteral } from './rust-text.js';
import { separator, textType } from './rust-types.js';

/** A form is parsed into a struct when its fields are described; else the handler gets all fields. */
export function formBodyCode(body: RequestBody, kind: 'multipart' | 'urlencoded'): BodyCode {
  // Only a multipart form has files.
  const isFile = (field: FormField) => kind === 'multipart' && field.isFile;
  const described = structFields((body.fields ?? []).map((field) => ({ ...field, isFile: isFile(field) })));
  if (described.fields.length === 0) return kind === 'multipart' ? anyMultipart(body) : anyUrlencoded(body);
  const fields = described.fields.map(({ described: field, identifier }) => ({
    identifier,
    ...fieldCode(field),
  }));
  const opening = openForm(
    kind,
    described.fields.some(({ described: { isFile } }) => !isFile),
  );
  return {
    definition: [
      '/// The fields of the form.',
      '#[derive(Serialize)]',
      ...bodyStruct(described, fieldCode),
      '',
      'impl Body {',
      '    fn read(req: &Request) -> Result<Body, HandlerError> {',
      ...opening.lines,
      '        Ok(Body {',
      ...fields.map(({ identifier, value }) => `            ${identifier}: ${value},`),
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
    helpers: [...opening.helpers, ...fields.flatMap(({ helpers }) => helpers)],
    types: fields.map(({ type }) => type),
  };
}

function anyMultipart({ required }: RequestBody): BodyCode {
  const statement = required
    ? '    let form = req.multipart()?;'
    : '    let form = req.is_multipart().then(|| req.multipart()).transpose()?;';
  const received = required ? 'form.fields' : 'form.map(|form| form.fields)';
  return { definition: [], statements: [statement], received, helpers: [], types: [] };
}

function anyUrlencoded({ required }: RequestBody): BodyCode {
  const statement = required
    ? '    let form = form_fields(&req)?;'
    : '    let form = (!req.body_bytes().is_empty()).then(|| form_fields(&req)).transpose()?;';
  return { definition: [], statements: [statement], received: 'form', helpers: ['form_fields'], types: [] };
}

/** Lines that define `form`, for files, and `fields`, for text. */
function openForm(kind: 'multipart' | 'urlencoded', hasText: boolean) {
  if (kind === 'urlencoded') {
    return { lines: ['        let fields = form_fields(req)?;'], helpers: ['form_fields'] as const };
  }
  return {
    lines: [
      '        let form = req.multipart()?;',
      ...(hasText ? ['        let fields = text_fields(&form);'] : []),
    ],
    helpers: hasText ? (['text_fields'] as const) : [],
  };
}

interface FieldCode extends FieldSource {
  /** Expression for the field's value. */
  readonly value: string;
  readonly helpers: readonly Helper[];
}

function fieldCode(field: FormField): FieldCode {
  const { required } = field;
  const name = stringLiteral(field.name);
  if (field.isFile) return fileField(field, name);
  // In an unsupported style there may be no field of exactly this name.
  if (field.unsupportedStyle !== undefined) return { ...rawText(name), type: 'Option<String>' };
  const { type, value, helpers, note } = optionalField(field, name);
  return {
    type: required ? type : `Option<${type}>`,
    value: required ? `require(${name}, ${value})?` : value,
    helpers: [...helpers, ...(required ? (['require'] as const) : [])],
    ...(note === undefined ? {} : { note }),
  };
}

function fileField({ required, type }: FormField, name: string): FieldCode {
  return {
    type: required ? 'MultipartFile' : 'Option<MultipartFile>',
    attributes: ['serialize_with = "file_info"'],
    value: required ? `form.require_file(${name})?.clone()` : `form.file(${name}).cloned()`,
    helpers: ['file_info'],
    ...(type === 'array' ? { note: 'If several files are sent, this is the last one.' } : {}),
  };
}

/** The value of a field as an `Option`; `type` is the type within. */
function optionalField({ type, itemType, style }: FormField, name: string): FieldCode {
  if (style === 'deepObject') {
    const fields = 'fields.iter().map(|(name, value)| (name, value))';
    return {
      type: 'HashMap<String, String>',
      value: `deep_object(${name}, ${fields})`,
      helpers: ['deep_object'],
    };
  }
  if (type === 'array' && style === 'repeated') {
    return {
      type: `Vec<${textType(itemType)}>`,
      value: `form_values(&fields, ${name})?`,
      helpers: ['form_values'],
    };
  }
  // The text of an object or array may contain the separator.
  if (type === 'array' && itemType !== 'object' && itemType !== 'array' && itemType !== 'any') {
    return {
      type: `Vec<${textType(itemType)}>`,
      value: `form_list(&fields, ${name}, ${separator(style)})?`,
      helpers: ['form_list'],
    };
  }
  if (type === 'object' || type === 'array') return rawText(name);
  return { type: textType(type), value: `form_value(&fields, ${name})?`, helpers: ['form_value'] };
}

function rawText(name: string): FieldCode {
  return {
    type: 'String',
    value: `form_value(&fields, ${name})?`,
    helpers: ['form_value'],
    note: 'The raw text.',
  };
}
