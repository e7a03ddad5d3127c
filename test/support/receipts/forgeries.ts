// Documents that an issuer could sign with its own key and that contradict the sealed ledger.
import { signDocument } from '../../../api/accounting/receipts/format/signature.ts';
import { privateKey } from './record.ts';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = Record<string, Json>;

/** What a forger starts from; every day of it is sealed. */
export interface GenuineRecords {
  readonly charges: JsonObject;
  /** Charges of somebody else on the same day. */
  readonly otherCharges: JsonObject;
  readonly statement: JsonObject;
  readonly day: string;
}

export interface Forgery {
  readonly name: string;
  /** Changes a copy of the genuine documents in place, and returns the one that is signed. */
  readonly forge: (genuine: GenuineRecords) => JsonObject;
  /** For what a signature does not show: changes the text of the signed document. */
  readonly edit?: (text: string) => string;
  /** What `npm run verify` has to report. */
  readonly finding: RegExp;
}

/** The text of the forged document, signed by the issuer. */
export async function forgeDocument(
  { forge, edit = (text) => text }: Forgery,
  genuine: GenuineRecords,
): Promise<string> {
  const { signature: _signature, ...content } = forge(structuredClone(genuine));
  return edit(JSON.stringify(await signDocument(content, privateKey)));
}

function listLines({ lines }: JsonObject): JsonObject[] {
  if (!Array.isArray(lines)) throw new Error('the document has no lines');
  return lines.map((line) => toJsonObject(line));
}

function toJsonObject(value: Json | undefined): JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('this is no object');
  return value;
}

function changeLine(document: JsonObject, change: JsonObject, index = 0): JsonObject {
  Object.assign(listLines(document)[index] ?? {}, change);
  return document;
}

function addLine(document: JsonObject, line: JsonObject): JsonObject {
  return { ...document, lines: [...listLines(document), line] };
}

/** A line of $5 that is consistent in itself, whose transaction was never posted. */
function inventLine({ charges }: GenuineRecords, at: string): JsonObject {
  const line = structuredClone(listLines(charges)[0] ?? {});
  const leaf = toJsonObject(line['leaf']);
  const hold = '00000000-0000-4000-8000-000000000005';
  const entries = leaf['entries'];
  if (!Array.isArray(entries)) throw new Error('the leaf has no entries');
  const invented = entries.map((entry, index) => ({ ...toJsonObject(entry), amount: index === 0 ? '5' : '-5' }));
  const call = leaf['call'] === undefined ? {} : { call: { ...toJsonObject(leaf['call']), hold } };
  return {
    ...line,
    hold,
    amount: '5',
    cost_usd: '5',
    leaf: { ...leaf, ...call, id: '999', reference: `settle:${hold}`, at, entries: invented },
    proof: null,
  };
}

const removeProofs = (document: JsonObject): JsonObject => {
  for (const line of listLines(document)) line['proof'] = null;
  return document;
};

export const chargeForgeries: readonly Forgery[] = [
  {
    name: 'an invented line of $5 on a sealed day, without a proof',
    forge: (genuine) => addLine(genuine.charges, inventLine(genuine, `${genuine.day}T12:00:00Z`)),
    finding: /line 4: transaction 999 has no proof/,
  },
  {
    name: 'an invented line of $5 on a sealed day, dated later',
    forge: (genuine) => addLine(genuine.charges, inventLine(genuine, '2999-01-01T12:00:00Z')),
    finding: /line 4: transaction 999 has no proof/,
  },
  {
    name: 'an invented cost without a transaction',
    forge: ({ charges, day }) =>
      addLine(charges, {
        ...listLines(charges)[0],
        hold: '00000000-0000-4000-8000-000000000005',
        at: `${day}T12:00:00Z`,
        ...{ cost_usd: '5', charged_usd: null, account: null, amount: null, leaf: null, proof: null },
      }),
    finding: /line 4: it has a cost, and no transaction/,
  },
  {
    name: 'all proofs removed',
    forge: ({ charges }) => removeProofs(charges),
    finding: /line 3: transaction \d+ has no proof/,
  },
  {
    name: 'another charged_usd',
    forge: ({ charges }) => changeLine(charges, { charged_usd: '5' }),
    finding: /line 1: its charged_usd is 5, transaction \d+ has 0\b/,
  },
  {
    name: 'another cost_usd',
    forge: ({ charges }) => changeLine(charges, { cost_usd: '5' }),
    finding: /line 1: its cost_usd is 5, transaction \d+ has 0\.0001/,
  },
  ...Object.entries({
    model: 'zeta-opus-4-8',
    kind: 'app',
    tool: 'translate_pdf',
    app: 'slide-generator',
    cost_source: 'billed',
    hold: '00000000-0000-4000-8000-000000000005',
  }).map(([field, value]) => ({
    name: `another ${field}`,
    forge: ({ charges }: GenuineRecords) => changeLine(charges, { [field]: value }),
    finding: new RegExp(`line 1: its ${field} is ${value}, transaction \\d+ has `),
  })),
  {
    name: 'another time of a call',
    forge: ({ charges, day }) => changeLine(charges, { at: `${day}T00:00:00.000001Z` }),
    finding: /line 1: its at is \S+, transaction \d+ has /,
  },
  {
    name: 'another caller',
    forge: ({ charges }) => ({ ...charges, caller: 'somebody-else' }),
    finding: /line 1: its caller is somebody-else, transaction \d+ has /,
  },
  {
    name: 'a charge of somebody else',
    forge: ({ charges, otherCharges }) => addLine(charges, listLines(otherCharges)[0] ?? {}),
    finding: /line 4: its caller is \S+, transaction \d+ has /,
  },
  {
    name: 'another day',
    forge: ({ charges }) => ({ ...charges, day: '2026-01-01' }),
    finding: /line 1: it is of \S+, the document is of 2026-01-01/,
  },
  {
    name: 'one call twice',
    forge: ({ charges }) => addLine(charges, listLines(charges)[0] ?? {}),
    finding: /line 4: transaction \d+ is in an earlier line/,
  },
  {
    name: 'the earlier form, in which fewer fields are in the leaf',
    forge: ({ charges }) => {
      for (const line of listLines(charges)) delete toJsonObject(line['leaf'])['call'];
      return { ...changeLine(charges, { model: 'zeta-opus-4-8' }), type: 'charges' };
    },
    finding: /line 1: transaction \d+ is not in the sealed day/,
  },
  {
    name: 'a member that is there twice',
    forge: ({ charges }) => charges,
    edit: (text) => text.replace('"cost_usd":', '"cost_usd":"5","cost_usd":'),
    finding: /the member "cost_usd" is there twice/,
  },
  {
    name: 'a member that is there twice, once with an escape',
    forge: ({ charges }) => charges,
    edit: (text) => text.replace('"charged_usd":', String.raw`"\u0063harged_usd":"5","charged_usd":`),
    finding: /the member "charged_usd" is there twice/,
  },
];

export const statementForgeries: readonly Forgery[] = [
  {
    name: 'all proofs of a statement removed',
    forge: ({ statement }) => removeProofs(statement),
    finding: /line 1: transaction \d+ has no proof/,
  },
  ...Object.entries({
    app: 'another',
    day: '2026-01-01',
    item: 'call',
    price_version: 'other',
    uses: 1,
    gross_usd: '0.0001',
    share: '0.5',
    events_sha256: 'f'.repeat(64),
    event: 'x',
    reason: 'agreed',
    kind: 'late',
  }).map(([field, value]) => ({
    name: `another ${field} of a line`,
    forge: ({ statement }: GenuineRecords) => changeLine(statement, { [field]: value }),
    finding: /line 1: it says something else than when transaction \d+ was posted/,
  })),
  {
    name: 'another amount of a line',
    forge: ({ statement }) => changeLine(statement, { amount_usd: '5' }),
    finding: /line 1: its amount_usd is 5, transaction \d+ has 0\.00014/,
  },
  {
    name: 'another author',
    forge: ({ statement }) => ({ ...statement, author: 'git.test/somebody' }),
    finding: /line 1: its account is not that of git\.test\/somebody/,
  },
  {
    name: 'another month',
    forge: ({ statement }) => ({ ...statement, month: '2026-01' }),
    finding: /line 1: it says something else than when transaction \d+ was posted/,
  },
  {
    name: 'another time of posting',
    forge: ({ statement, day }) => changeLine(statement, { posted_at: `${day}T00:00:00.001Z` }),
    finding: /line 1: its posted_at is \S+, transaction \d+ has /,
  },
  {
    name: 'another sum',
    forge: ({ statement }) => ({ ...statement, closing_usd: '5' }),
    finding: /its closing_usd is 5, its lines come to 0\.00014/,
  },
  {
    name: 'a line without a transaction',
    forge: ({ statement }) => changeLine(statement, { account: null, amount: null, leaf: null, proof: null }),
    finding: /line 1: it has an amount, and no transaction/,
  },
];
