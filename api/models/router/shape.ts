// What differs between routers: how they report a cost, keep records, and check a key.
import type { BillRequest, LookupResult, RouterBill } from '../../billing/index.ts';
import type { Cost, RouterUsage } from './answer.ts';

/** Response headers, by name in lower case. */
export type RouterHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The parts of a response that may carry its cost. */
export interface CostEvidence {
  readonly headers: RouterHeaders;
  readonly usage: RouterUsage | null | undefined;
  readonly streamed: boolean;
  /** Whether the model has a price, so that a cost of 0 is suspect. */
  readonly priced: boolean;
}

/** A GET of the router's, with a key: status, body as exact JSON, and its own text of an error, which is shown to nobody. */
export type Get = (
  address: string,
) => Promise<{ readonly status: number; readonly body: unknown; readonly said?: string | undefined }>;

/** A call whose cost is to be found. */
export interface Lookup {
  /** Id of its hold, which was sent along. */
  readonly hold: string;
  readonly reference: string | null;
}

/** What the router refuses to bill to a key beyond, by its own account. */
export type KeyLimit =
  | { readonly outcome: 'limited'; readonly usd: string; readonly per: string | undefined }
  | { readonly outcome: 'unlimited' }
  | { readonly outcome: 'not known'; readonly why: string };

export interface LimitRequest {
  readonly method: 'POST' | 'PATCH';
  readonly address: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface RouterShape {
  /** A request in this router's own names, where those of OpenRouter differ from it. */
  dialect(body: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>;
  /** Fields to add to a request, so that it is metered and can be found again. */
  fields(hold: string, streamed: boolean): Readonly<Record<string, unknown>>;
  /** Headers to add to it. */
  headers(hold: string): Readonly<Record<string, string>>;
  /** The cost, when it is reported. */
  cost(evidence: CostEvidence): Cost | undefined;
  /** Asks the router's records. `never`, where it keeps none. */
  lookUp(call: Lookup, get: Get, base: string): Promise<LookupResult>;
  /** Why no cost can be found in its records; undefined where it can, or where that is not known. */
  missingRecords(get: Get, base: string): Promise<string | undefined>;
  /** What it billed, by its own records. Calls of others, on a router that is shared, may be among them. */
  billOf(request: BillRequest, get: Get, base: string): Promise<RouterBill>;
  /** Address that answers 200 to a valid key and 401 to any other. */
  keyAddress(base: string): string;
  /** The limit in what that address says of a key, its body as exact JSON. */
  keyLimit(body: unknown): KeyLimit;
  /** The request that sets a limit of so many USD a day on a key. */
  setLimit(key: { readonly key: string; readonly hash: string; readonly usd: number }, base: string): LimitRequest;
  /** How the operator of this installation sets one. */
  readonly limitAdvice: string;
}

/** One value of a header. */
export function header(headers: RouterHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
