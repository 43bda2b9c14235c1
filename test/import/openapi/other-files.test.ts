/** References to other files of a bundle. */
import { expect } from 'chai';
import { documentWith, RESPONSES, read } from '../documents/documents.js';

type Files = Readonly<Record<string, string>>;

/** A document in `api/`, beside other files. */
function readIn(files: Files, members: object) {
  const readText = (path: string) =>
    Object.hasOwn(files, path) ? Promise.resolve(files[path] ?? '') : undefined;
  return read(documentWith(members), 100, { document: 'api/openapi.yaml', readText });
}

const body = ($ref: string) => ({
  paths: {
    '/a': {
      post: { requestBody: { content: { 'application/json': { schema: { $ref } } } }, responses: RESPONSES },
    },
  },
});
const PET = 'type: object\nrequired: [id]\nproperties:\n  id: {type: integer}\n';

async function membersOf(files: Files, $ref: string) {
  const { operations, warnings } = await readIn(files, body($ref));
  return { warnings, members: operations[0]?.body?.members.map(({ name, type }) => `${name} ${type}`) };
}

describe('OpenAPI: references to other files', () => {
  it('names the file of a key that is repeated in one object', async () => {
    const files = { 'api/pet.yaml': `${PET}required: []\n` };
    expect(await membersOf(files, 'pet.yaml')).to.deep.equal({
      members: ['id integer'],
      warnings: [
        'api/pet.yaml, line 5, column 1: the key "required" stands there again in the same object; only this last one is read',
      ],
    });
  });

  it('resolves references to other files relative to the file that has them', async () => {
    const references = {
      'pet.yaml': { 'api/pet.yaml': PET },
      './pet.yaml#': { 'api/pet.yaml': PET },
      './schemas/pet.json#/Pet': {
        'api/schemas/pet.json': '{"Pet": {"properties": {"id": {"type": "integer"}}}}',
      },
      '../pet.yaml': { 'pet.yaml': PET },
      'my%20pet.yaml': { 'api/my pet.yaml': PET },
      'my pet.yaml': { 'api/my pet.yaml': PET },
      'schemas\\pet.yaml': { 'api/schemas/pet.yaml': PET },
      'all.yaml#/a~1b/~0c': { 'api/all.yaml': `a/b:\n  ~c:\n    properties: {id: {type: integer}}\n` },
      'all.yaml#/default/example': {
        'api/all.yaml': 'default: {example: {properties: {id: {type: integer}}}}',
      },
      'all.yaml#named': { 'api/all.yaml': 'x:\n  $anchor: named\n  properties: {id: {type: integer}}' },
      'all.yaml#/Pet': { 'api/all.yaml': 'Pet: {$ref: "./deep/pet.yaml"}', 'api/deep/pet.yaml': PET },
      'deep/pet.yaml': {
        'api/deep/pet.yaml': '$ref: "../../common/base.yaml#/Base"',
        'common/base.yaml': 'Base: {allOf: [{$ref: "#/Own"}]}\nOwn: {properties: {id: {type: integer}}}',
      },
    };
    for (const [reference, files] of Object.entries(references)) {
      expect(await membersOf(files, reference), reference).to.deep.equal({
        members: ['id integer'],
        warnings: [],
      });
    }
  });

  it('follows references between files that lead back to the document and form cycles', async () => {
    const files = {
      'api/node.yaml':
        'properties: {id: {type: integer}, parent: {$ref: "node.yaml"}, tag: {$ref: "openapi.yaml#/components/schemas/Tag"}}',
    };
    const { operations, warnings } = await readIn(files, {
      ...body('node.yaml'),
      components: { schemas: { Tag: { type: 'object', properties: { node: { $ref: 'node.yaml' } } } } },
    });
    expect(warnings).to.deep.equal([]);
    expect(operations[0]?.body?.members.map(({ name, type }) => `${name} ${type}`)).to.deep.equal([
      ...['id integer', 'parent object', 'tag object'],
    ]);
  });

  it('follows references to path items, parameters and bodies in other files', async () => {
    const { operations, warnings } = await readIn(
      {
        'api/paths/pets.yaml': [
          'parameters: [{$ref: "../parts.yaml#/parameters/Limit"}]',
          'post:',
          '  requestBody: {$ref: "../parts.yaml#/bodies/Pet"}',
          '  responses: {default: {$ref: "#/nowhere"}}',
        ].join('\n'),
        'api/parts.yaml': [
          'parameters:',
          '  Limit: {name: limit, in: query, schema: {$ref: "schemas/limit.yaml"}}',
          'bodies:',
          '  Pet: {content: {application/json: {schema: {$ref: "schemas/pet.yaml"}}}}',
        ].join('\n'),
        'api/schemas/limit.yaml': 'type: integer',
        'api/schemas/pet.yaml': PET,
      },
      { paths: { '/pets': { $ref: 'paths/pets.yaml' } } },
    );
    expect(warnings).to.deep.equal([
      'api/paths/pets.yaml/post/responses/default: $ref "#/nowhere" has no target',
    ]);
    expect(operations).to.have.lengthOf(1);
    expect(operations[0]?.parameters).to.deep.equal([
      {
        name: 'limit',
        in: 'query',
        required: false,
        type: 'integer',
        itemType: 'any',
        style: 'form',
        explode: true,
      },
    ]);
    expect(operations[0]?.body?.members).to.have.lengthOf(1);
  });

  it('follows no reference to a file that is missing, broken or out of the bundle', async () => {
    const files = { 'api/broken.yaml': 'a: [', passwd: PET, '/etc/passwd': PET, 'api/empty.yaml': '' };
    const reasons: Record<string, RegExp> = {
      'missing.yaml': /names a file that is not in the bundle$/,
      'broken.yaml': /api\/broken\.yaml: The document is neither JSON nor YAML/,
      'empty.yaml': /api\/empty\.yaml: The document is empty/,
      '/etc/passwd': /leads out of the bundle/,
      '../../passwd': /leads out of the bundle/,
      '%2e%2e/..%2f/passwd': /leads out of the bundle/,
      'file:///etc/passwd': /is a URL/,
      'https://a.example/pet.yaml': /is a URL/,
    };
    for (const [reference, reason] of Object.entries(reasons)) {
      const { members, warnings } = await membersOf(files, reference);
      expect(members, reference).to.deep.equal([]);
      expect(warnings, reference).to.have.lengthOf(1);
      expect(warnings[0]).to.match(reason);
    }
  });
});
