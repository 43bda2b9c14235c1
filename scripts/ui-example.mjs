/**
 * Fills a gateway by its API with what an installation of some weeks may have, for the pictures of docs/ui: endpoints
 * in all states, versions, traffic, services, an import with flaws, users. Only the figures of the hours before are not
 * of the API: nobody waits for them.
 */
import { createClient } from '../dist/test/support/client.js';
import { zipOf } from '../dist/test/support/zip.js';
import { addPastFigures } from './ui-example-figures.mjs';
import { stackFiles } from './ui-example-stack.mjs';

export const ADMIN = { email: 'ada@example.com', name: 'Ada Lovelace', password: 'correct horse battery' };
const SHOP = 'shop.example.com';

const handler = (body, name = 'req') => `use rust_edge_gateway_sdk::prelude::*;

fn handle(${name}: Request) -> Response {
${body.replace(/^/gm, '    ')}
}

handler_loop!(handle);
`;

const LIST_ORDERS = `use rust_edge_gateway_sdk::prelude::*;

#[derive(Serialize)]
struct Order {
    id: u32,
    customer: &'static str,
    total_cents: u32,
    state: &'static str,
}

/// The orders of today; the newest first.
const ORDERS: [Order; 3] = [
    Order { id: 1043, customer: "Lin", total_cents: 12_900, state: "paid" },
    Order { id: 1042, customer: "Noor", total_cents: 4_250, state: "packed" },
    Order { id: 1041, customer: "Sam", total_cents: 980, state: "sent" },
];

fn handle(req: Request) -> Response {
    let wanted = req.query_param("state");
    let found: Vec<&Order> = ORDERS
        .iter()
        .filter(|order| wanted.is_none_or(|state| order.state == state))
        .collect();
    info!(found = found.len(); "orders are listed");
    Response::ok(json!({ "orders": found }))
}

handler_loop!(handle);
`;

const PLACE_ORDER = `use rust_edge_gateway_sdk::prelude::*;

#[derive(Deserialize)]
struct NewOrder {
    customer: String,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    sku: String,
    count: u32,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let order: NewOrder = req.json()?;
    let first = order.items.first().expect("an order has items");
    info!(customer = order.customer.as_str(), sku = first.sku.as_str(); "an order of {} pieces", first.count);
    Ok(Response::new(201).with_body("placed"))
}

handler_loop_result!(handle);
`;

const SEARCH = `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    let query = req.query_param("q").unwrap_or_default();
    let found: Vec<Product> = find(query, 20);
    Response::ok(json!({ "products": found }))
}

fn find(query: &str, limit: u32) -> Vec<String> {
    let names = ["chair", "table", "lamp"];
    let mut matching: Vec<String> = names.iter().filter(|name| name.contains(query)).cloned().collect();
    matching.truncate(limit);
    matching
}

handler_loop!(handle);
`;

const IMPORTED = zipOf({
  'openapi.yaml': `openapi: 3.1.0
info: { title: Returns, version: "2.1" }
paths:
  /returns:
    get: { operationId: listReturns, summary: Lists returns, responses: { "200": { description: Returns } } }
    post: { operationId: createReturn, summary: Starts a return, responses: { "201": { description: It }}}
  /returns/{id}:
    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
    get: { operationId: getReturn, summary: Shows a return, responses: { "200": { description: It }}}
    head: { operationId: hasReturn, responses: { "204": { description: It is there } } }
  /returns/{id}/label:
    parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
    get: { operationId: printLabel, summary: Prints a label, responses: { "200": { description: A PDF }}}
`,
  'handlers/list_returns.rs': handler('Response::ok(json!({ "returns": [] }))', '_req'),
  'handlers/create_return.rs': handler('Response::ok(start_of(&req))'),
  'handlers/get_return.rs': handler('Response::ok(json!({ "id": req.path_param("id") }))'),
});

/**
 * @param apiUrl of a gateway that is empty
 * @param databaseUrl its database
 * @param objects the config of an object storage
 * @returns the ids by which pages are found, and the cookie of the admin
 */
export async function fillExample({ apiUrl, gatewayUrl, databaseUrl, objects }) {
  const gateway = createClient(gatewayUrl);
  const cookie = await firstAdmin(apiUrl);
  const api = clientAs(apiUrl, cookie);
  const shop = await api.post('/api/domains', {
    host: SHOP,
    name: 'Shop',
    description: 'What customers buy',
  });
  const status = await api.post('/api/domains', { host: 'status.example.org', name: 'Status page' });
  const collection = (domain, name, base) =>
    api.post('/api/collections', { domain_id: domain.id, name, base_path: base });
  const orders = await collection(shop, 'Orders', '/orders');
  const products = await collection(shop, 'Products', '/products');
  const endpoint = (method, path, name, code, { domain = shop, within, ...rest } = {}) =>
    api.post('/api/endpoints', {
      ...{ method, path, name, code, domain: domain.host, collection_id: within?.id ?? null },
      ...rest,
    });
  const deploy = ({ id }, message, body = {}) =>
    api.post(`/api/endpoints/${id}/deploy`, { message, ...body });

  const list = await endpoint('GET', '/', 'List orders', LIST_ORDERS, {
    within: orders,
    description: 'Orders of today, newest first',
  });
  const show = await endpoint(
    ...['GET', '/{id}', 'Show an order'],
    handler(
      'info!("order {:?} is shown", req.path_param("id"));\nResponse::ok(json!({ "id": req.path_param("id") }))',
    ),
    { within: orders },
  );
  const place = await endpoint('POST', '/', 'Place an order', PLACE_ORDER, { within: orders });
  const product = await endpoint(
    ...['GET', '/{sku}', 'Show a product'],
    handler('Response::ok(json!({ "sku": req.path_param("sku"), "price_cents": 4900 }))'),
    { within: products },
  );
  const search = await endpoint('GET', '/search', 'Search products', SEARCH, { within: products });
  const stock = await endpoint(
    ...['PUT', '/{sku}/warehouses/{warehouse}/stock', 'Set the stock of a product in one of the warehouses'],
    handler('Response::no_content()', '_req'),
    { within: products },
  );
  const ping = await endpoint('GET', '/ping', 'Ping', handler('Response::text(200, "up")', '_req'), {
    domain: status,
  });
  const report = await endpoint(
    ...['POST', '/reports', 'Write the daily report'],
    handler('if req.body.is_none() { std::process::exit(3); }\nResponse::no_content()'),
    { domain: status },
  );
  await endpoint('DELETE', '/cache', 'Empty the cache', handler('Response::no_content()', '_req'), {
    domain: status,
  });

  await deploy(list, 'The first orders');
  await deploy(list, 'Only some of the fields', {
    code: LIST_ORDERS.replace(
      "    state: &'static str,\n",
      '    /// Such as "paid".\n    state: &\'static str,\n',
    ),
  });
  await deploy(list, 'Orders can be filtered by their state', {
    ...{ code: LIST_ORDERS.replace('The orders of today', 'All orders'), percent: 10 },
  });
  for (const one of [show, place, product, stock, ping, report]) await deploy(one, 'As agreed with the shop');
  await api.tried('POST', `/api/endpoints/${search.id}/compile`);

  await settings(api, { shop, orders, list });
  const services = await addServices(api, { list, place, product, objects });
  await send(gateway);
  const { import_id: imported } = await api.postForm(
    `/api/import/bundle?${new URLSearchParams({ domain: SHOP, compile: 'true', start: 'true' })}`,
    { bundle: new File([IMPORTED], 'returns.zip') },
  );
  const [build] = await api.get('/api/builds?state=failed&limit=1');
  const apply = await applyFiles(api, stackFiles(1));
  await alerts(api, { shop, place });
  await people(api);
  await addPastFigures(databaseUrl, [
    { ...list, perMinute: 46, errors: 0.002 },
    { ...show, perMinute: 31, errors: 0.004 },
    { ...place, perMinute: 9, errors: 0.06 },
    { ...product, perMinute: 74, errors: 0.001 },
    { ...ping, perMinute: 12, errors: 0 },
  ]);
  return {
    cookie,
    ids: {
      list: list.id,
      place: place.id,
      search: search.id,
      report: report.id,
      shop: shop.id,
      orders: orders.id,
      build: build.id,
      import: imported,
      apply,
      ...services,
    },
  };
}

async function firstAdmin(apiUrl) {
  const open = createClient(apiUrl);
  expectSuccess('POST /api/users', await open.post('/api/users', { ...ADMIN, role: 'admin' }));
  const { email, password } = ADMIN;
  const signedIn = await open.post('/api/session', { email, password });
  expectSuccess('POST /api/session', signedIn);
  return signedIn.headers['set-cookie'][0].split(';')[0];
}

/** Requests as this session; all but those that are `tried` have to succeed. */
function clientAs(apiUrl, cookie) {
  const client = createClient(apiUrl);
  const send = (method, path, body, headers = {}) =>
    client.send(method, path, { ...(body !== undefined && { body }), headers: { cookie, ...headers } });
  const must = async (method, path, body) =>
    expectSuccess(`${method} ${path}`, await send(method, path, body));
  return {
    get: (path) => must('GET', path),
    post: (path, body) => must('POST', path, body),
    put: (path, body) => must('PUT', path, body),
    tried: send,
    /** A form, whose files are blobs. */
    async postForm(path, fields) {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.set(name, value);
      const response = await fetch(new URL(path, apiUrl), {
        method: 'POST',
        body: form,
        headers: { cookie },
      });
      return expectSuccess(`POST ${path}`, { status: response.status, body: await response.json() });
    },
  };
}

function expectSuccess(what, { status, body }) {
  if (status >= 200 && status < 300) return body?.data;
  throw new Error(`${what} answers ${status}: ${JSON.stringify(body)}`);
}

/** Variables, secrets, policies, and a schedule. */
async function settings(api, { shop, orders, list }) {
  await api.put(`/api/domains/${shop.id}/variables`, { CURRENCY: 'EUR', REGION: 'eu-central' });
  await api.put(`/api/domains/${shop.id}/secrets/PAYMENT_KEY`, { value: 'shown to nobody' });
  await api.put(`/api/collections/${orders.id}/variables`, { PAGE_SIZE: '50' });
  await api.put(`/api/endpoints/${list.id}/variables`, { RUST_LOG: 'info', GREETING: 'Good morning' });
  await api.put(`/api/endpoints/${list.id}/secrets/WEBHOOK_TOKEN`, { value: 'shown to nobody' });
  await api.put(`/api/domains/${shop.id}`, {
    policies: {
      cors: { origins: ['https://www.example.com'] },
      rate_limit: { requests: 600, window_seconds: 60, by: 'address' },
    },
  });
  await api.put(`/api/collections/${orders.id}`, { policies: { timeout: 5000, body_limit: 65536 } });
  await api.post(`/api/endpoints/${list.id}/schedules`, { cron: '0 6 * * *', timezone: 'Europe/Berlin' });
}

/** @returns the id of the apply */
async function applyFiles(api, files) {
  const { plan_hash: hash } = await api.post('/api/apply?dry_run=true', { files });
  return (await api.post(`/api/apply?plan_hash=${hash}`, { files })).id;
}

async function alerts(api, { shop, place }) {
  // Nobody is told: it is on this machine, and pictures show another one.
  const url = 'http://127.0.0.1:9/on-call';
  await api.post('/api/alerts', { on: 'crash_loop', url });
  await api.post('/api/alerts', {
    ...{ on: 'error_rate', url, percent: 5, minutes: 5, scope: { endpoint_id: place.id } },
  });
  await api.post('/api/alerts', { on: 'build_failed', url, scope: { domain: SHOP }, enabled: false });
  await api.post('/api/alerts', { on: 'service_unreachable', url });
  for (const name of ['Mobile app', 'Partner in Lyon'])
    await api.post(`/api/domains/${shop.id}/keys`, { label: name });
}

async function addServices(api, { list, place, product, objects }) {
  const service = (name, type, config) => api.post('/api/services', { name, service_type: type, config });
  const bind = ({ id }, { id: service }, pool) =>
    api.post(`/api/endpoints/${id}/services`, { service_id: service, pool_id: pool });
  const db = await service('orders', 'sqlite', {
    ...{ path: 'orders.sqlite', create_if_missing: true },
  });
  const cache = await service('product cache', 'redis', { host: '127.0.0.1', port: 1, database: 2 });
  const payments = await service('payments', 'http', {
    ...{ base_url: 'https://payments.example.com/v2', token: 'shown to nobody', timeout_seconds: 10 },
  });
  const mail = await service('mail to customers', 'email', {
    ...{ host: 'mail.example.com', port: 587, from_address: 'shop@example.com', from_name: 'The shop' },
  });
  const files = await service('product images', 'objstore', objects);
  for (const { id } of [db, cache, files]) await api.tried('POST', `/api/services/${id}/activate`);
  await bind(list, db, 'db');
  await bind(place, db, 'db');
  await bind(place, payments, 'payments');
  await bind(place, mail, 'mail');
  await bind(product, cache, 'cache');
  for (const [path, text] of [
    ['chairs/oak.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ['chairs/pine.svg', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ['price-list.csv', 'sku,price\noak,49\n'],
    ['terms.txt', 'Goods may be returned within 30 days.\n'.repeat(90)],
  ])
    await api.postForm('/api/minio/objects', { key: path, file: new File([text], path) });
  return { db: db.id, cache: cache.id };
}

/** What customers send: most of it good. */
async function send(gateway) {
  const host = { host: SHOP };
  for (let number = 0; number < 40; number++) {
    await gateway.get(number % 3 === 0 ? '/orders/?state=paid' : '/orders/', { headers: host });
    await gateway.get(`/orders/${1000 + number}`, { headers: host });
    await gateway.get(`/products/${['oak', 'pine', 'beech'][number % 3]}`, { headers: host });
    const items = number % 8 === 5 ? [] : [{ sku: 'oak', count: 1 + (number % 4) }];
    await gateway.post(
      '/orders/',
      { customer: ['Lin', 'Noor', 'Sam'][number % 3], items },
      { headers: host },
    );
    await gateway.get('/ping', { headers: { host: 'status.example.org' } });
  }
  for (let number = 0; number < 8; number++)
    await gateway.send('POST', '/reports', { headers: { host: 'status.example.org' } });
}

async function people(api) {
  const password = 'a long enough password';
  const user = (name, role, domains = []) =>
    api.post('/api/users', {
      email: `${name.split(' ')[0].toLowerCase()}@example.com`,
      name,
      password,
      role,
      domains,
    });
  await user('Grace Hopper', 'editor');
  await user('Alan Turing', 'editor', [SHOP]);
  await user('Edsger Dijkstra', 'viewer');
  await api.post('/api/tokens', {
    ...{ name: 'deployments of the shop', domains: [SHOP] },
    permissions: ['endpoints:read', 'endpoints:write', 'endpoints:deploy', 'builds:read'],
  });
  await api.post('/api/tokens', { name: 'figures for the wall', permissions: ['statistics:read'] });
}
