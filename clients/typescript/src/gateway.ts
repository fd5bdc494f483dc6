import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { text as textOf } from "node:stream/consumers";
import { GatewayError, isPassing } from "./errors.js";

export interface GatewayOptions {
  /** One address or several; a link with ?token=… gives the token too. Default: STINT_GATEWAY_URL, split at commas. */ gateway?: string | string[];
  /** Default: STINT_TOKEN. */ token?: string;
}

export interface CallOptions {
  /** JSON as text, or a value that becomes JSON. */ body?: unknown;
  /** How many milliseconds a gateway may be silent: 30,000 unless given. */ timeout?: number;
  signal?: AbortSignal;
  /** Which gateway to call; unless given, the one that answered last. */ at?: number;
}

// A small call by node:http takes a third of the time that fetch takes.
const agents = { "http:": new http.Agent({ keepAlive: true }), "https:": new https.Agent({ keepAlive: true }) };

/** The gateways of an installation. Calls go to one of them, and after a failure to the next one. */
export class Gateways {
  readonly #bases: URL[];
  readonly #token: string | undefined;
  /** Which gateway the next call goes to. */
  at = 0;

  constructor(options: GatewayOptions = {}) {
    const given = options.gateway ?? process.env.STINT_GATEWAY_URL?.split(",") ?? [];
    let token = options.token;
    this.#bases = [given].flat().filter((text) => text.trim() !== "").map((text) => {
      const url = new URL(text.trim());
      token ??= url.searchParams.get("token") ?? undefined;
      url.search = url.hash = "";
      url.pathname = url.pathname.replace(/(\/api\/v1)?\/*$/, "/api/v1");
      return url;
    });
    if (!this.#bases.every((url) => url.protocol in agents)) throw new TypeError("the address of a gateway begins with http:// or https://");
    if (this.#bases.length === 0) throw new TypeError("no gateway is given: set the option gateway, or STINT_GATEWAY_URL");
    this.#token = token ?? process.env.STINT_TOKEN;
  }

  /** What another thread needs to call the same gateways. */
  get options(): GatewayOptions {
    return { gateway: this.#bases.map(String), token: this.#token ?? "" };
  }

  /** Calls once. Throws a GatewayError; if there was no answer, the next call goes to the next gateway. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const at = options.at ?? this.at;
    const url = this.#bases[at]!.href + path;
    let status: number | undefined;
    let answer: string;
    try {
      [status, answer] = await this.#send(this.#bases[at]!.protocol, url, method, options);
      if (status < 300) return (answer === "" ? undefined : JSON.parse(answer)) as T;
    } catch (err) {
      options.signal?.throwIfAborted();
      answer = (err as Error).message;
      status = undefined;
    }
    const err = new GatewayError(`${method} ${url}: ${status === undefined ? answer : `${status} ${problem(answer)}`}`, status);
    if (isPassing(err) && status !== 503 && status !== 429 && this.at === at) this.at = (at + 1) % this.#bases.length;
    throw err;
  }

  async #send(protocol: string, url: string, method: string, { body, timeout = 30_000, signal }: CallOptions): Promise<[number, string]> {
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const headers: Record<string, string | number> = {};
    if (this.#token) headers.authorization = `Bearer ${this.#token}`;
    if (text !== undefined) Object.assign(headers, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
    const { request: open, agent } = protocol === "https:" ? { request: https.request, agent: agents["https:"] } : { request: http.request, agent: agents["http:"] };
    const request = open(url, { method, headers, agent, timeout, ...(signal && { signal }) });
    request.on("timeout", () => request.destroy(new Error(`no answer within ${timeout} ms`)));
    request.on("error", () => {}); // once reports the error, and this those that come after the answer has begun
    request.end(text);
    const [response] = (await once(request, "response")) as [http.IncomingMessage];
    return [response.statusCode!, await textOf(response)];
  }
}

/** Returns what problem details (RFC 9457) say, in one line. */
function problem(text: string): string {
  try {
    const { title, detail, errors = [] } = JSON.parse(text) as { title?: string; detail?: string; errors?: { message?: string; location?: string }[] };
    return [detail ?? title, ...errors.map((e) => [e.location, e.message].filter(Boolean).join(": "))].filter(Boolean).join("; ");
  } catch {
    return text.slice(0, 200);
  }
}
