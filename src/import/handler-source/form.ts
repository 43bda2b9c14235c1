/** The part of a generated handler that takes forms apart: their fields are text, or files. */
import type { FormField, RequestBody } from '../openapi/document.js';
import type { ReadBody } from './body.js';
import type { Helper } from './helpers.js';
import { bodyStruct, type FieldSource, structFields } from './rust-struct.js';
import { stringLiteral } from './rust-text.js';
import { separator, textType } from './text-values.js';

/** How a handler reads a form: as a struct when its fields are described, else as it is. */
export function readForm(body: RequestBody, kind: 'multipart' | 'urlencoded'): ReadBody {
  // Only a multipart form has files.
  const isFile = (field: FormField) => kind === 'multipart' && field.isFile;
  const described = structFields((body.fields ?? []).map((field) => ({ ...field, isFile: isFile(field) })));
  if (described.fields.length === 0) return kind === 'multipart' ? anyMultipart(body) : anyUrlencoded(body);
  const read = described.fields.map(({ described: field, identifier }) => ({
    identifier,
    ...reading(field),
  }));
  const opening = openings(
    kind,
    described.fields.some(({ described: { isFile } }) => !isFile),
  );
  return {
    definition: [
      '/// The form that clients send.',
      '#[derive(Serialize)]',
      ...bodyStruct(described, reading),
      '',
      'impl Body {',
      '    fn read(req: &Request) -> Result<Body, HandlerError> {',
      ...opening.lines,
      '        Ok(Body {',
      ...read.map(({ identifier, value }) => `            ${identifier}: ${value},`),
      '        })',
      '    }',
      '}',
    ],
    statements: [
      body.required
        ? '    let body = Body::read(&req)?;'
        : '    let body = (!req.body_bytes().is_empty()).then(|| Body::read(&req)).transpose()?;',
    ],
    shown: 'body',
    helpers: [...opening.helpers, ...read.flatMap(({ helpers }) => helpers)],
    types: read.map(({ type }) => type),
  };
}

function anyMultipart({ required }: RequestBody): ReadBody {
  const statement = required
    ? '    let form = req.multipart()?;'
    : '    let form = req.is_multipart().then(|| req.multipart()).transpose()?;';
  const shown = required ? 'form.fields' : 'form.map(|form| form.fields)';
  return { definition: [], statements: [statement], shown, helpers: [], types: [] };
}

function anyUrlencoded({ required }: RequestBody): ReadBody {
  const statement = required
    ? '    let form = form_fields(&req)?;'
    : '    let form = (!req.body_bytes().is_empty()).then(|| form_fields(&req)).transpose()?;';
  return { definition: [], statements: [statement], shown: 'form', helpers: ['form_fields'], types: [] };
}

/** Lines that define `form`, for files, and `fields`, for text. */
function openings(kind: 'multipart' | 'urlencoded', hasText: boolean) {
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

interface FieldReading extends FieldSource {
  /** The expression that the field gets. */
  readonly value: string;
  readonly helpers: readonly Helper[];
}

function reading(field: FormField): FieldReading {
  const { required } = field;
  const name = stringLiteral(field.name);
  if (field.isFile) return file(field, name);
  // Of such a value there need be nothing under its own name.
  if (field.rawStyle !== undefined) return { ...text(name), type: 'Option<String>' };
  const { type, value, helpers, remark } = optionalText(field, name);
  return {
    type: required ? type : `Option<${type}>`,
    value: required ? `require(${name}, ${value})?` : value,
    helpers: [...helpers, ...(required ? (['require'] as const) : [])],
    ...(remark === undefined ? {} : { remark }),
  };
}

function file({ required, type }: FormField, name: string): FieldReading {
  return {
    type: required ? 'MultipartFile' : 'Option<MultipartFile>',
    attributes: ['serialize_with = "file_info"'],
    value: required ? `form.require_file(${name})?.clone()` : `form.file(${name}).cloned()`,
    helpers: ['file_info'],
    ...(type === 'array' ? { remark: 'Of several files, the last arrives.' } : {}),
  };
}

/** An `Option` of what a field holds. */
function optionalText({ type, itemType, style }: FormField, name: string): FieldReading {
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
  // Text of objects may have commas of its own.
  if (type === 'array' && itemType !== 'object' && itemType !== 'array' && itemType !== 'any') {
    return {
      type: `Vec<${textType(itemType)}>`,
      value: `form_list(&fields, ${name}, ${separator(style)})?`,
      helpers: ['form_list'],
    };
  }
  if (type === 'object' || type === 'array') return text(name);
  return { type: textType(type), value: `form_value(&fields, ${name})?`, helpers: ['form_value'] };
}

function text(name: string): FieldReading {
  return {
    type: 'String',
    value: `form_value(&fields, ${name})?`,
    helpers: ['form_value'],
    remark: 'Its text, which is not taken apart.',
  };
}
