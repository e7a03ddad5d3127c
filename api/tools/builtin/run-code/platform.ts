// Answers requests of the JavaScript sandbox for addresses, encodings and locales. Accepts and returns JSON: the code
// never receives an object of this process.
import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';

/** Maximum length of a request: work on it cannot be interrupted. */
const maxCharacters = 2_000_000;
const maxFormatters = 50;

type Answer = (words: unknown) => unknown;
type Formatter = Readonly<Record<string, (...words: unknown[]) => unknown>>;
type MakeFormatter = new (locales?: string | string[], options?: object) => Formatter;

const text = z.string();
const locales = z.union([z.string(), z.array(z.string()), z.null()]).transform((given) => given ?? undefined);
const options = z
  .record(z.string(), z.unknown())
  .nullable()
  .transform((given) => given ?? undefined);
const word = z.union([
  z.object({ date: z.number().nullable() }).transform(({ date }) => new Date(date ?? Number.NaN)),
  z.object({ big: z.string() }).transform(({ big }) => BigInt(big)),
  z.object({ none: z.literal(true) }).transform(() => undefined),
  z.object({ number: z.string() }).transform(({ number }) => Number(number)),
  z.object({ plain: z.unknown() }).transform(({ plain }) => plain),
]);
const parts = [
  'href',
  'origin',
  'protocol',
  'username',
  'password',
  'host',
  'hostname',
  'port',
  'pathname',
  'search',
  'hash',
] as const;

const kinds = {
  DateTimeFormat: ['format', 'formatToParts', 'formatRange', 'formatRangeToParts'],
  NumberFormat: ['format', 'formatToParts', 'formatRange', 'formatRangeToParts'],
  Collator: ['compare'],
  PluralRules: ['select', 'selectRange'],
  RelativeTimeFormat: ['format', 'formatToParts'],
  ListFormat: ['format', 'formatToParts'],
  DurationFormat: ['format', 'formatToParts'],
  DisplayNames: ['of'],
  Segmenter: ['segment'],
} as const;
const kind = z.enum(Object.keys(kinds) as (keyof typeof kinds)[]);
const constructors = Intl as unknown as Readonly<
  Record<keyof typeof kinds, MakeFormatter & { supportedLocalesOf(given?: string | string[]): string[] }>
>;
const formatters = new Map<string, Formatter>();

function createAnswer<Words extends z.ZodType>(words: Words, answer: (given: z.output<Words>) => unknown): Answer {
  return (given) => answer(words.parse(given));
}

const answers: Readonly<Record<string, Answer>> = {
  'url.parse': createAnswer(z.tuple([text, text.nullable()]), ([address, base]) =>
    toUrlParts(base === null ? new URL(address) : new URL(address, base)),
  ),
  'url.set': createAnswer(z.tuple([text, z.enum(parts), text]), ([href, name, value]) => {
    const url = new URL(href);
    if (name !== 'origin') url[name] = value;
    return toUrlParts(url);
  }),
  'params.parse': createAnswer(z.tuple([text]), ([query]) => [...new URLSearchParams(query)]),
  'params.text': createAnswer(z.tuple([z.array(z.tuple([text, text]))]), ([pairs]) =>
    new URLSearchParams(pairs).toString(),
  ),
  decoder: createAnswer(z.tuple([text]), ([label]) => new TextDecoder(label).encoding),
  decode: createAnswer(
    z.tuple([text, z.object({ fatal: z.boolean(), ignoreBOM: z.boolean() }), text]),
    ([label, how, binary]) => new TextDecoder(label, how).decode(Buffer.from(binary, 'latin1')),
  ),
  atob: createAnswer(z.tuple([text]), ([given]) => atob(given)),
  btoa: createAnswer(z.tuple([text]), ([given]) => btoa(given)),
  uuid: () => randomUUID(),
  random: createAnswer(z.tuple([z.int().min(0).max(65_536)]), ([count]) => [...randomBytes(count)]),
  intl: createAnswer(z.tuple([kind, locales, options, text, z.array(word)]), ([name, given, how, method, words]) => {
    const formatter = getFormatter(name, given, how);
    if (method === 'resolvedOptions') return formatter['resolvedOptions']?.();
    if (!kinds[name].some((known) => known === method)) throw new TypeError(`${method} is not a method`);
    const answer = formatter[method]?.(...words);
    return name === 'Segmenter' ? [...(answer as Iterable<unknown>)] : answer;
  }),
  supported: createAnswer(z.tuple([kind, locales]), ([name, given]) => constructors[name].supportedLocalesOf(given)),
  canonical: createAnswer(z.tuple([locales]), ([given]) => Intl.getCanonicalLocales(given)),
  values: createAnswer(z.tuple([text]), ([key]) =>
    Intl.supportedValuesOf(key as Parameters<typeof Intl.supportedValuesOf>[0]),
  ),
  locale: createAnswer(z.tuple([text, options]), ([tag, how]) => toLocaleFacts(new Intl.Locale(tag, how))),
  date: createAnswer(
    z.tuple([
      z.enum(['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']),
      z.number().nullable(),
      locales,
      options,
    ]),
    ([method, time, given, how]) => new Date(time ?? Number.NaN)[method](given, how),
  ),
  case: createAnswer(
    z.tuple([z.enum(['toLocaleUpperCase', 'toLocaleLowerCase']), text, locales]),
    ([method, given, where]) => given[method](where),
  ),
};

/** Answers one request. Never throws: an error is returned for the code to catch. */
export function answerPlatform(name: string, words: string): string {
  try {
    const answer = Object.hasOwn(answers, name) ? answers[name] : undefined;
    if (answer === undefined) throw new TypeError(`${name} is not available`);
    if (words.length > maxCharacters) throw new RangeError('the text is too long');
    const json = JSON.stringify({ value: answer(JSON.parse(words)) ?? undefined });
    if (json.length > maxCharacters * 4) throw new RangeError('the result is too long');
    return json;
  } catch (error) {
    const { name: kindOfError, message } =
      error instanceof z.ZodError || !(error instanceof Error)
        ? new TypeError('the arguments are not of the expected type')
        : error;
    return JSON.stringify({ error: { name: kindOfError, message: message.slice(0, 500) } });
  }
}

function toUrlParts(url: URL): Record<string, string> {
  return Object.fromEntries(parts.map((name) => [name, url[name]]));
}

/** Caches formatters: creating one takes far longer than using it. */
function getFormatter(
  name: keyof typeof kinds,
  given: string | string[] | undefined,
  how: Record<string, unknown> | undefined,
): Formatter {
  const key = JSON.stringify([name, given, how]);
  const known = formatters.get(key);
  if (known !== undefined) return known;
  const made = new constructors[name](given, how);
  if (formatters.size >= maxFormatters) formatters.clear();
  formatters.set(key, made);
  return made;
}

function toLocaleFacts(locale: Intl.Locale): Record<string, unknown> {
  const { baseName, language, script, region, calendar, collation, hourCycle, numberingSystem, numeric } = locale;
  const facts = { baseName, language, script, region, calendar, collation, hourCycle, numberingSystem, numeric };
  return {
    ...facts,
    tag: locale.toString(),
    maximized: locale.maximize().toString(),
    minimized: locale.minimize().toString(),
  };
}
