// Parses JSON in which money stands as numbers, and keeps the digits of those as they were written.

/** Fields in which routers write USD. */
const moneyFields: ReadonlySet<string> = new Set([
  'cost',
  'total_cost',
  'upstream_inference_cost',
  'spend',
  'response_cost',
  // Of a key: what it may spend.
  'limit',
  'max_budget',
  // Of a day, in what OpenRouter calls activity; in an answer it is an object.
  'usage',
]);

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
/** The language has the third argument; the types of this version do not know it yet. */
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** Like JSON.parse, but a number in a field of money becomes the text it was written as. @throws SyntaxError */
export function parseExact(text: string): unknown {
  return parse(text, (key, value, { source }) => (typeof value === 'number' && moneyFields.has(key) ? source : value));
}
