// Prices: the price list, whose versions take effect on announced days; what it charges a caller; and the maximum cost of a
// model call, which is reserved before the call.
import { z } from 'zod';
import {
  moneyField,
  formatMoney,
  type Money,
  parseMoney,
  negate,
  computeShare,
  zero,
  computePrice,
  sumMoney,
} from './ledger/money.ts';
import { toKeyAccount, toMarginAccount, type Payer } from './ledger/accounts.ts';
import type { Line } from './ledger/ledger.ts';

const day = z.iso.date('must be a day like 2027-01-31');
const name = z.string().regex(/^[a-z][a-z0-9_]{0,39}$/, 'must be the name of a tool, like web_search');
const margin = z
  .string()
  .regex(/^(0([.][0-9]{1,6})?|1([.]0{1,6})?)$/, 'must be a share from 0 to 1 with at most 6 decimals, like 0.05')
  .transform((text) => Math.round(Number(text) * 1_000_000));

/** One version, as the operator of an installation writes it. Amounts are decimal strings in USD. */
const versionSource = z.strictObject({
  version: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{0,39}$/, 'must be a short name in lower case, like 2027-01')
    .describe('Name of the version, shown on each line of a statement.'),
  from: day.describe('First UTC day on which it is in effect.'),
  announced: day.describe('Day on which it was announced.'),
  note: z.string().max(500).optional().describe('The change, in a sentence.'),
  use: moneyField
    .prefault('0.0001')
    .describe(
      'Price of a use of an app by a visitor, USD. Visitors are not charged; the author accrues a share of it.',
    ),
  call: moneyField.prefault('0.0001').describe('Price of a call of an app by an agent, USD.'),
  tools: z.record(name, moneyField).default({}).describe('Prices of tools, USD, instead of their own.'),
  modelMargin: margin
    .prefault('0')
    .describe('Charged to callers with a key in addition to the cost of model calls, as a fraction of it.'),
  free: z
    .array(name)
    .default([])
    .describe('Tools and "call" that are free for callers: their cost is recorded, and the platform pays it.'),
  accrues: z
    .array(z.enum(['use', 'call']))
    .default(['use'])
    .describe(
      'Items that are not charged, but of which an author still accrues a share: use (by visitors), call (on the free quota).',
    ),
  usesPerVisitor: z
    .int()
    .positive()
    .default(50)
    .describe('Maximum uses of an app by one visitor per day of which its author accrues a share.'),
  usesPerNetwork: z
    .int()
    .positive()
    .default(200)
    .describe('The same for all visitors from one /24 (IPv4) or /48 (IPv6), which may belong to one person.'),
  usesPerApp: z
    .int()
    .positive()
    .default(10_000)
    .describe('Maximum uses of an app by all visitors per day of which its author accrues a share.'),
});

const source = z.array(versionSource).min(1, 'must have at least one version').max(200);

/** One version of the price list, in effect from its first day until the next version's. */
export type PriceVersion = Readonly<z.output<typeof versionSource>>;

/** Parses a recorded version. @throws z.ZodError */
export function readVersion(content: unknown): PriceVersion {
  return versionSource.parse(content);
}

/** Converts a version to JSON, with amounts and shares as decimal text. The reverse of `readVersion`. */
export function toVersionJson({ use, call, tools, modelMargin, ...rest }: PriceVersion): z.input<typeof versionSource> {
  return {
    ...rest,
    use: formatMoney(use),
    call: formatMoney(call),
    tools: Object.fromEntries(
      Object.entries(tools)
        .map(([name, price]) => [name, formatMoney(price)] as const)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
    modelMargin: String(modelMargin / 1_000_000),
  };
}

/** Applies if an installation configures no price list: during the beta, comparisons are not charged. */
const beta: z.input<typeof source> = [
  {
    version: 'beta',
    from: '2026-01-01',
    announced: '2026-01-01',
    note: 'During the beta, nobody is charged for compare_models.',
    free: ['compare_models'],
  },
];

/** Creates the schema of a price list: versions in order, each announced early enough. Its issues name each wrong field. */
export function createVersionsSchema(noticeDays: number): z.ZodType<readonly PriceVersion[]> {
  return source.check(({ value, issues }) => {
    const report = (index: number, field: string, message: string): void => {
      issues.push({ code: 'custom', path: [index, field], message, input: value });
    };
    for (const [index, { version, from, announced }] of value.entries()) {
      const before = value[index - 1];
      if (value.findIndex((other) => other.version === version) < index)
        report(index, 'version', `${version} is used twice`);
      if (before === undefined) continue;
      if (from <= before.from)
        report(index, 'from', `must be after ${before.from}, when ${before.version} comes into effect`);
      if (countDaysBetween(announced, from) < noticeDays)
        report(index, 'from', `must be at least ${noticeDays} days after it was announced (${announced})`);
    }
  });
}

/**
 * Reads the price list from configuration, which is JSON text; undefined means the price list of the beta. @throws Error
 * that names each wrong field
 */
export function readPriceList(text: string | undefined, noticeDays: number): PriceList {
  const result = createVersionsSchema(noticeDays).safeParse(text === undefined ? beta : parseJson(text));
  if (result.success) return new PriceList(result.data);
  const lines = result.error.issues.map(({ path, message }) => `  ${path.join('.')}: ${message}`);
  throw new Error(`invalid price list (MOORAGE_PRICES):\n${lines.join('\n')}`);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** All versions of the price list, and which one is in effect. */
export class PriceList {
  #versions: readonly PriceVersion[];

  /** @param versions at least one, oldest first */
  constructor(versions: readonly PriceVersion[]) {
    this.#versions = versions;
  }

  get versions(): readonly PriceVersion[] {
    return this.#versions;
  }

  /** Switches to the recorded versions, if a configured one differs from what was announced. */
  replace(versions: readonly PriceVersion[]): void {
    if (versions.length > 0) this.#versions = versions;
  }

  /** Returns the version in effect; before the first version takes effect, the first. */
  at(time: Date = new Date()): PriceVersion {
    const today = time.toISOString().slice(0, 10);
    const versions = this.#versions.filter(({ from }, index) => index === 0 || from <= today);
    return versions.at(-1) as PriceVersion;
  }
}

/** Returns a tool's price in this version. `own`: the tool's own price, USD. */
export function resolveToolPrice({ tools }: PriceVersion, tool: string, own: string): Money {
  return tools[tool] ?? parseMoney(own);
}

/** Whether a tool, or app calls (`call`), are free of charge. */
export function isFree({ free }: PriceVersion, item: string): boolean {
  return free.includes(item);
}

export function countDaysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000);
}

/** Describes the field `charged_usd` of an answer. */
export const chargedText =
  'What you are charged for this call in USD: 0 while the free quota covers it, and for what the price list names as free. With an API key, the price of the tool or the app and the margin on model costs; what the model router bills to your key comes on top of it, and is in the cost.';

/**
 * Computes how much of our own price (of a tool or a call, or the margin on model costs) is charged. Only callers with a key
 * are charged; the free quota counts costs, which no caller pays. `item`: the name of the tool, or `call`.
 */
export function computeCharge(price: Money, { kind }: Payer, version: PriceVersion, item: string): Money {
  return kind === 'key' && !isFree(version, item) ? price : zero;
}

/** Computes the margin on the cost of a model call, rounded down to the pico-dollar. */
export function computeMargin(cost: Money, payer: Payer, version: PriceVersion, item: string): Money {
  return computeCharge(computeShare(cost, version.modelMargin), payer, version, item);
}

/** Returns the lines that add a margin to a call's transaction; none for a margin of 0. */
export function toMarginLines(margin: Money, { owner }: Payer, router: string): Line[] {
  return margin === zero
    ? []
    : [
        { account: toKeyAccount(owner), amount: margin },
        { account: toMarginAccount(router), amount: negate(margin) },
      ];
}

/** Prices in USD per million tokens. */
export interface Prices {
  readonly in_per_m: Money;
  readonly out_per_m?: Money;
  /** Maximum tokens that this model counts for an image; default: `maxImageTokens`. */
  readonly image_tokens?: number | undefined;
}

/** Tokens around the texts: roles, separators, additions of a router. */
const perMessage = 32;
const perCall = 64;
/** Tokens that a provider may add before a schema or a list of tools, to make the model follow it. */
const perSchema = 1_024;
/**
 * Maximum tokens that any known model counts for an image: one small model bills 48 169 for the largest, after scaling it
 * down. models.yaml can give a lower limit for each model (`image_tokens`).
 */
export const maxImageTokens = 49_152;

/** The input of a call. */
export interface Prompt {
  /** All of its text, or the JSON in which it is sent. */
  readonly texts: readonly string[];
  readonly images?: number;
  /** Schemas and lists of tools, whose JSON is in `texts`. */
  readonly schemas?: number;
  /** Input that was sent as tokens. */
  readonly tokens?: number;
}

/** No tokenizer makes more tokens of a text than it has bytes in UTF-8. */
export function countMaxTokens(
  { texts, images = 0, schemas = 0, tokens = 0 }: Prompt,
  perImage: number = maxImageTokens,
): number {
  const inTexts = texts.reduce((total, text) => total + Buffer.byteLength(text, 'utf8') + perMessage, perCall);
  return inTexts + images * perImage + schemas * perSchema + tokens;
}

/** The maximum cost of a call at these prices. */
export function computeMaxCost(prices: Prices, prompt: Prompt, maxTokens: number): Money {
  const out = prices.out_per_m === undefined ? [] : [computePrice(maxTokens, prices.out_per_m)];
  return sumMoney([computePrice(countMaxTokens(prompt, prices.image_tokens), prices.in_per_m), ...out]);
}
