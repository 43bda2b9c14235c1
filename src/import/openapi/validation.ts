/**
 * The policy `validate` of operations: their parameters and bodies as the document describes them. What the policy
 * cannot express is left out, with a warning.
 */
import { textProblem } from '../../model/formats.js';
import { SchemaProblem } from '../../model/json-schema/schema-problem.js';
import { textsOf } from '../../model/policies/checks.js';
import {
  compileValidate,
  OTHER_HEADERS,
  PARAMETER_STYLES,
  type ValidatedBody,
  type ValidatedParameter,
  type ValidateMode,
  type ValidatePolicy,
} from '../../model/policies/validate.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import type { Warn } from '../warnings.js';
import type { Parameter } from './document.js';
import { FormObjects } from './form-objects.js';
import { entriesOf, own, shortened } from './json.js';
import type { Parameters } from './parameters.js';
import { ConvertedSchemas } from './policy-schemas.js';
import { ReadOnlyMembers } from './read-only.js';
import type { References } from './references.js';
import type { Schemas } from './schemas.js';
import { type DroppedSchema, WidenedSchemas } from './widened-schemas.js';
import { withoutPart } from './without-part.js';

/** Parts that are left out of one policy, before none is made. */
const MAX_LEFT_OUT = 100;
const JSON_TYPE = /^application\/(?:[^;\s/]+\+)?json\s*(?:;|$)/i;
const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;

export class RequestValidation {
  readonly #mode: ValidateMode;
  readonly #references: References;
  readonly #parameters: Parameters;
  readonly #formObjects: FormObjects;
  readonly #widened = new WidenedSchemas();
  readonly #readOnly: ReadOnlyMembers;
  readonly #converted: ConvertedSchemas;
  readonly #warn: Warn;
  readonly #warned = new Set<string>();

  constructor(
    mode: ValidateMode,
    sources: {
      readonly references: References;
      readonly parameters: Parameters;
      readonly schemas: Schemas;
      /** The document is of OpenAPI 3.0. */
      readonly isOld: boolean;
    },
    warn: Warn,
  ) {
    this.#mode = mode;
    this.#references = sources.references;
    this.#parameters = sources.parameters;
    this.#formObjects = new FormObjects(sources);
    this.#readOnly = new ReadOnlyMembers(sources.references, this.#widened, sources.isOld);
    this.#converted = new ConvertedSchemas(sources, this.#widened, this.#readOnly, (text) =>
      this.#tell(text),
    );
    this.#warn = warn;
  }

  /** The policy as JSON; none when there is nothing to check. @param label the operation, for messages */
  of(label: string, parameters: readonly Parameter[], operation: JsonObject): { readonly validate?: string } {
    if (this.#mode === 'off') return {};
    const checked = parameters.flatMap((parameter) => this.#parameter(label, parameter) ?? []);
    const body = this.#body(label, operation);
    if (checked.length === 0 && !body) return {};
    const named = this.#converted.named({ checked, body });
    const hasNamed = Object.keys(named).length > 0;
    const policy = {
      mode: this.#mode,
      ...(checked.length > 0 && { parameters: checked }),
      ...(body && { body }),
      ...(hasNamed && { components: { schemas: named } }),
    };
    return this.#enforceable(label, policy) ? { validate: JSON.stringify(policy) } : {};
  }

  /** Leaves out what cannot be enforced, and what could refuse more because of it. */
  #enforceable(label: string, policy: ValidatePolicy): boolean {
    for (let count = 0; count < MAX_LEFT_OUT; count++) {
      try {
        compileValidate(policy);
        const problem = textsOf(policy).map(textProblem).find(Boolean);
        if (problem !== undefined) {
          this.#tell(`${label}: requests are not validated: a text ${problem}`);
          return false;
        }
        this.#readOnly.relax(policy);
        const dropped = this.#widened.settle(policy);
        for (const one of dropped) this.#tellDropped(label, one);
        // What is there instead goes deeper.
        if (dropped.length === 0) return true;
      } catch (thrown) {
        if (!(thrown instanceof SchemaProblem)) throw thrown;
        const { place, message } = thrown;
        const left = withoutPart(policy, place, this.#widened);
        if (!left) {
          this.#tell(`${label}: requests are not validated: the schemas ${shortened(message)}`);
          return false;
        }
        this.#tell(`${partOf(label, left)} is not validated: ${place.at(-1)} ${shortened(message)}`);
      }
    }
    this.#tell(
      `${label}: requests are not validated: more than ${MAX_LEFT_OUT} parts of the schemas cannot be`,
    );
    return false;
  }

  #tellDropped(label: string, { keyword, place }: DroppedSchema): void {
    const what = keyword === 'oneOf' ? 'validated as anyOf' : 'not validated';
    this.#tell(`${partOf(label, place)} is ${what}: not all is validated of a schema that it depends on`);
  }

  #parameter(label: string, parameter: Parameter): ValidatedParameter | undefined {
    const described = this.#parameters.describedOf(parameter);
    if (!described) return undefined;
    const { name, in: where, required, style, explode } = parameter;
    if (where === 'header' && OTHER_HEADERS.includes(name.toLowerCase())) {
      this.#tell(`${label}: the header ${shortened(name)} is not validated: it is no parameter`);
      return undefined;
    }
    const base = {
      ...{ in: where, name },
      ...(required && where !== 'path' && { required }),
      ...(own(described, 'allowEmptyValue') === true && { allowEmptyValue: true }),
    };
    const [[type = '', media] = []] = entriesOf(own(described, 'content'));
    const isText = style === 'text';
    if (isText && JSON_TYPE.test(type)) {
      const schema = isObject(media) ? own(media, 'schema') : undefined;
      return { ...base, content: { 'application/json': { schema: this.#converted.of(schema) } } };
    }
    const schema = isText ? true : this.#converted.of(own(described, 'schema'));
    if (isText && type !== '')
      this.#tell(
        `${label}: the ${where} parameter "${shortened(name)}" of the type ${shortened(type)} is not validated`,
      );
    // A path without one has another route.
    if (schema === true && (!required || where === 'path')) return undefined;
    const usual = isText ? undefined : PARAMETER_STYLES[where][0];
    return {
      ...base,
      ...(usual !== undefined && style !== usual && { style }),
      ...(usual !== undefined && explode !== (style === 'form') && { explode }),
      schema,
    };
  }

  #body(label: string, operation: JsonObject): ValidatedBody | undefined {
    const body = this.#references.find(own(operation, 'requestBody'));
    if (!isObject(body)) return undefined;
    const content = entriesOf(own(body, 'content')).map(([type, value]) => {
      const media = this.#references.find(value);
      const schema = isObject(media) ? own(media, 'schema') : undefined;
      if (!isObject(media) || schema === undefined) return [type, {}] as const;
      const isForm =
        FORM_TYPE.test(type) && own(media, 'encoding') === undefined && !this.#formObjects.areIn(schema);
      if (JSON_TYPE.test(type) || isForm || /^text\//i.test(type)) {
        const converted = this.#converted.of(schema);
        return [type, converted === true ? {} : { schema: converted }] as const;
      }
      this.#tell(`${label}: bodies of the type ${shortened(type)} are let through without validation`);
      return [type, {}] as const;
    });
    if (content.length === 0) return undefined;
    return {
      ...(own(body, 'required') === true && { required: true }),
      content: Object.fromEntries(content),
    };
  }

  #tell(text: string): void {
    if (this.#warned.has(text)) return;
    this.#warned.add(text);
    this.#warn('validation', text);
  }
}

/** A schema that several operations share has one warning. */
function partOf(label: string, place: readonly string[]): string {
  const part = shortened(place.join('.'));
  return place[0] === 'components' ? part : `${label}: ${part}`;
}
