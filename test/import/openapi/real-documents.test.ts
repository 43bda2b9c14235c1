import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parameterNames, parseRoute } from '../../../src/model/route-pattern.js';
import { GITHUB_DOCUMENT } from '../../support/server-cache.js';
import { documentText, read } from '../documents/documents.js';

const label = ({ method, path }: { method: string; path: string }) => `${method} ${path}`;

describe('OpenAPI: real documents', () => {
  it('reads the petstore in OpenAPI 3.0', async () => {
    const document = await read(documentText('petstore-3.0.yaml'));
    expect(document).to.include({ title: 'Swagger Petstore', version: '1.0.0', basePath: '/v1' });
    expect(document.warnings).to.deep.equal([]);
    expect(document.operations.map(label)).to.deep.equal(['GET /pets', 'POST /pets', 'GET /pets/{petId}']);
    const [list, create, show] = document.operations;
    expect(list).to.deep.equal({
      operationId: 'listPets',
      name: 'listPets',
      method: 'GET',
      path: '/pets',
      description: 'List all pets',
      parameters: [
        {
          name: 'limit',
          in: 'query',
          required: false,
          type: 'integer',
          itemType: 'any',
          style: 'form',
          explode: true,
        },
      ],
      body: null,
    });
    expect(create?.body).to.deep.equal({
      required: true,
      mediaType: 'application/json',
      type: 'object',
      members: [
        { name: 'id', required: true, type: 'integer', nullable: false },
        { name: 'name', required: true, type: 'string', nullable: false },
        { name: 'tag', required: false, type: 'string', nullable: false },
      ],
    });
    expect(show?.parameters).to.deep.equal([
      {
        name: 'petId',
        in: 'path',
        required: true,
        type: 'string',
        itemType: 'any',
        style: 'simple',
        explode: false,
      },
    ]);
  });

  it('reads features of OpenAPI 3.1', async () => {
    const document = await read(documentText('museum-3.1.yaml'));
    expect(document).to.include({
      title: 'Museum of Modern Measures',
      description: 'Tickets and exhibits',
      basePath: '/api/v1',
    });
    expect(document.operations.map(({ name }) => name)).to.deep.equal([
      'getExhibit',
      'PUT /exhibits/{exhibitId}',
      'GET /exhibits',
      'buyTicket',
    ]);
    const [exhibit, keep, list, buy] = document.operations;
    expect(exhibit?.parameters.map(({ name, type, required }) => [name, type, required])).to.deep.equal([
      ['exhibitId', 'integer', true],
      ['lang', 'string', true],
    ]);
    expect(keep?.parameters.map(({ name, required }) => [name, required])).to.deep.equal([
      ['exhibitId', true],
      ['lang', false],
    ]);
    expect(list?.description).to.equal('All exhibits.');
    expect(list?.parameters.map(({ name, type, itemType }) => [name, type, itemType])).to.deep.equal([
      ['tags', 'array', 'string'],
      ['room', 'integer', 'any'],
      ['free', 'any', 'any'],
    ]);
    const members = buy?.body?.members.map(({ name, type, required, nullable }) =>
      [name, type, required && 'required', nullable && 'nullable'].filter(Boolean).join(' '),
    );
    expect(buy?.body).to.include({ mediaType: 'application/json', type: 'object', required: true });
    expect(members).to.deep.equal([
      'email string required',
      'phone string required nullable',
      'date string required',
      'visitors integer',
      'price number',
      'note string nullable',
      'either any',
      'exhibit object',
      'anything any',
    ]);
    expect(document.warnings).to.deep.equal([
      'OPTIONS /tickets: left out: endpoints have the methods GET, POST, PUT, DELETE and PATCH',
    ]);
  });

  it('resolves references of path items, also to other paths and in chains', async () => {
    const document = await read(documentText('path-items-3.0.json'));
    expect(document.basePath).to.equal('/shop');
    expect(document.operations.map(({ name }) => name)).to.deep.equal([
      'listOrders',
      'createOrder',
      'deleteOrder',
      'GET /archive/{orderId}',
      'GET /drafts/{orderId}',
    ]);
    const [list, create, remove, archive] = document.operations;
    expect(list?.parameters[0]).to.include({ name: 'page', in: 'query', type: 'integer' });
    expect(create?.body).to.include({ mediaType: 'application/vnd.shop+json', type: 'object' });
    expect(create?.body?.members.map(({ name, type }) => [name, type])).to.deep.equal([
      ['items', 'array'],
      ['follows', 'object'],
    ]);
    expect(remove?.parameters[0]).to.include({ name: 'orderId', type: 'integer' });
    expect(archive?.parameters[0]).to.include({ name: 'orderId', type: 'string' });
  });

  it('reads a document with more than a thousand operations', async () => {
    const text = readFileSync(GITHUB_DOCUMENT, 'utf8');
    const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, unknown>> };
    const described = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const { operations, warnings } = await read(text, 2_000);
    expect(operations).to.have.lengthOf.above(1_000);
    expect(operations.map(label)).to.deep.equal(described);
    expect(warnings).to.have.lengthOf(1);
    expect(warnings[0]).to.match(/^The servers of single paths and operations are ignored/);
    for (const { path, parameters } of operations) {
      const names = parseRoute(path).segments.flatMap(parameterNames);
      const described = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
      expect(described.sort()).to.deep.equal(names.sort());
    }
    const create = operations.find(({ name }) => name === 'repos/create-for-authenticated-user');
    expect(create?.body?.members.find(({ name }) => name === 'name')).to.deep.equal({
      name: 'name',
      required: true,
      type: 'string',
      nullable: false,
    });
  });
});
