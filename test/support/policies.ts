/** A domain, a collection and endpoints whose policies are tested, with real processes. */
import { expectData } from './expect.js';
import { type Answer, type Call, call } from './http.js';
import { type Stack, startStack } from './processes.js';

/** Tells what reached it. */
const SHOWS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    let mut shown = json!({
        "method": req.method,
        "subject": req.subject(),
        "claims": req.claims(),
        "key_label": req.key_label(),
        "headers": req.headers,
        "bytes": req.body_bytes().len(),
    });
    if let Some(length) = req.query_param_as::<usize>("length") {
        shown["filler"] = "all work and no play ".repeat(length / 21 + 1).into();
    }
    if let Some(ms) = req.query_param_as::<u64>("sleep") {
        std::thread::sleep(std::time::Duration::from_millis(ms));
    }
    let mut response = Response::json(200, shown);
    for (name, value) in req.query_pairs() {
        if let Some(name) = name.strip_prefix("header-") {
            response = response.with_header(name, &value);
        }
    }
    response
}
handler_loop!(handle);
`;

/** What the handler shows of a request. */
export interface Shown {
  readonly method: string;
  readonly subject: string | null;
  readonly claims: Readonly<Record<string, unknown>> | null;
  readonly key_label: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: number;
}

export interface PolicyStack {
  readonly stack: Stack;
  readonly host: string;
  /** Paths of the API. */
  readonly domain: string;
  readonly collection: string;
  /** GET and POST /shown. */
  readonly endpoint: string;
  readonly post: string;
  /** Replaces the policies of one of these; fails when they are refused. */
  set(owner: string, policies: object | null): Promise<void>;
  /** Sends a request to the gateway. */
  send(options?: Call & { readonly path?: string }): Promise<Answer>;
  /** What the handler saw of one that it got. */
  shown(options?: Call & { readonly path?: string }): Promise<Shown>;
  close(): Promise<void>;
}

export async function startPolicyStack(env: Record<string, string> = {}): Promise<PolicyStack> {
  const host = 'policies.example';
  const stack = await startStack({ env });
  const create = async (path: string, body: object) =>
    expectData<{ id: string }>(await stack.api.post(path, body), 201).id;
  const domainId = await create('/api/domains', { name: 'D', host });
  const collectionId = await create('/api/collections', { name: 'C', domain_id: domainId });
  const deploy = async (method: string) =>
    `/api/endpoints/${await stack.deploy({
      ...{ name: method, path: '/shown', method, code: SHOWS, domain: host },
      collection_id: collectionId,
    })}`;
  const [endpoint, post] = [await deploy('GET'), await deploy('POST')];
  const send: PolicyStack['send'] = ({ path = '/shown', headers, ...options } = {}) =>
    call(`${stack.gatewayUrl}${path}`, { ...options, headers: { host, ...headers } });
  return {
    ...{ stack, host, endpoint, post, send },
    domain: `/api/domains/${domainId}`,
    collection: `/api/collections/${collectionId}`,
    set: async (owner, policies) => {
      expectData(await stack.api.put(owner, { policies }));
    },
    shown: async (options) => {
      const { status, text } = await send(options);
      if (status !== 200) throw new Error(`${status}: ${text}`);
      return JSON.parse(text) as Shown;
    },
    close: () => stack.close(),
  };
}

/** How many requests the policy `validate` has reported. */
export async function reportsOf({ apiUrl }: Stack): Promise<number> {
  const { text } = await call(`${apiUrl}/metrics`);
  const figure = /edge_gateway_policy_reports_total\{[^}]*policy="validate"[^}]*\} (\d+)/.exec(text);
  return Number(figure?.[1] ?? 0);
}

/** What policies have reported of requests with this id, as the log has it. */
export async function reportedOf({ api }: Stack, requestId: string): Promise<unknown[]> {
  const { items } = expectData<{ items: { fields: Record<string, unknown> | null }[] }>(
    await api.get(`/api/logs?request_id=${requestId}`),
  );
  return items.map(({ fields }) => fields?.['reported']);
}

/** What a refusal of the policy `validate` lists, with the places. */
export function problemsOf(text: string): readonly string[] {
  const { problems } = JSON.parse(text) as { problems: { place: string; problem: string }[] };
  return problems.map(({ place, problem }) => `${place}: ${problem}`);
}
