// The result of a tool as every protocol carries it.
import assert from 'node:assert/strict';
import { z } from 'zod';

export const envelope = z.looseObject({
  result: z.looseObject({}).optional(),
  artifact: z.looseObject({ url: z.string(), media_type: z.string(), bytes: z.int() }).optional(),
  cost_usd: z.number().nullish(),
  cost_source: z.string().optional(),
  request_id: z.string(),
});
export type Envelope = z.output<typeof envelope>;

/** A call of a tool, by whatever protocol. @throws Error with the problem, as the agent reads it */
export type CallTool = (name: string, fields: object) => Promise<Envelope>;

/** Every result says what it cost. */
export function expectCost({ cost_usd: cost, cost_source: source }: Envelope): void {
  assert.equal(typeof cost, 'number');
  assert.equal(typeof source, 'string');
}

/** The file of a result, read from its address as an agent would. */
export async function readFileOfResult(
  { artifact }: Envelope,
  { baseUrl, fetch }: { readonly baseUrl: string; readonly fetch: typeof globalThis.fetch },
): Promise<Uint8Array> {
  const { pathname, search } = new URL(artifact?.url ?? assert.fail('no file'));
  const answer = await fetch(new URL(`${pathname}${search}`, baseUrl));
  assert.equal(answer.status, 200, artifact?.url);
  return new Uint8Array(await answer.arrayBuffer());
}
