import { GatewayError, isPassing } from "./errors.js";

export interface GatewayOptions {
  /** One address or several; a link with ?token=… gives the token too. Default: STINT_GATEWAY_URL, split at commas. */ gateway?: string | string[];
  /** Default: STINT_TOKEN. */ token?: string;
}

/** The body is JSON as text or a value that becomes JSON, the timeout in milliseconds, and at the number of a gateway: that which answered last unless given. */
export type CallOptions = { body?: unknown; timeout?: number; at?: number };

/** The gateways of an installation. Calls go to one of them, and after a failure to the next one. */
export class Gateways {
  readonly #bases: string[];
  readonly #token: string;
  /** Which gateway the next call goes to. */
  at = 0;

  constructor(options: GatewayOptions = {}) {
    const given = [options.gateway ?? process.env.STINT_GATEWAY_URL?.split(",") ?? []].flat();
    const urls = given.filter((text) => text.trim() !== "").map((text) => new URL(text.trim()));
    if (urls.length === 0) throw new TypeError("no gateway is given: set the option gateway, or STINT_GATEWAY_URL");
    if (!urls.every((url) => /^https?:$/.test(url.protocol))) throw new TypeError("the address of a gateway begins with http:// or https://");
    this.#token = options.token ?? urls.map((url) => url.searchParams.get("token")).find((token) => token) ?? process.env.STINT_TOKEN ?? "";
    this.#bases = urls.map((url) => url.origin + url.pathname.replace(/(\/api\/v1)?\/*$/, "/api/v1"));
  }

  /** Calls once. Throws a GatewayError; if there was no good answer, the next call goes to the next gateway. */
  async call<T>(method: string, path: string, { body = null, timeout = 30_000, at = this.at }: CallOptions = {}): Promise<T> {
    const url = this.#bases[at] + path;
    const headers = { "content-type": "application/json", ...(this.#token && { authorization: `Bearer ${this.#token}` }) };
    const request = { method, headers, body: body === null || typeof body === "string" ? body : JSON.stringify(body), signal: AbortSignal.timeout(timeout) };
    const answered = fetch(url, request).then(async (answer) => [answer.status, await answer.text()] as const);
    const [status, text] = await answered.catch((err) => [0, (err.cause ?? err).message as string] as const);
    if (status >= 200 && status < 300) return (text === "" ? undefined : JSON.parse(text)) as T;
    const err = new GatewayError(`${method} ${url}: ${status === 0 ? text : `${status} ${problem(text)}`}`, status);
    if (isPassing(err) && this.at === at) this.at = (at + 1) % this.#bases.length;
    throw err;
  }
}

/** Returns what problem details (RFC 9457) say, in one line. */
function problem(text: string): string {
  try {
    const { title, detail, errors = [] } = JSON.parse(text);
    return [detail ?? title, ...errors.map((e: Record<string, unknown>) => `${e.location}: ${e.message}`)].join("; ");
  } catch {
    return text.slice(0, 200);
  }
}
