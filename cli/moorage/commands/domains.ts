// Commands for the own domains of an app: list, add, check and remove. A domain is proven by a record in its DNS.
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { toHarmlessText } from '../../../lib/harmless-text.ts';
import { type Api, anyAnswer } from '../client.ts';
import { formatFields, formatTime } from '../output.ts';
import { defineCommand, type Session } from '../program.ts';
import { appArgument, appOption, chooseApp, otherAppOption } from './apps.ts';

const feature = 'own domains';
const record = z.looseObject({ name: z.string(), value: z.string() });
const domain = z.looseObject({
  domain: z.string(),
  state: z.string(),
  message: z.string(),
  url: z.string().optional(),
  records: z.looseObject({ txt: record, cname: record }),
  target: z.string(),
  checked_at: z.string().optional(),
  check_requested_at: z.string().default(''),
  lookup_error: z.string().optional(),
});
type Domain = z.output<typeof domain>;
const list = z.looseObject({ offered: z.boolean().default(false), domains: z.array(domain) });

const nameArgument = { name: 'DOMAIN', about: 'the domain, such as shop.example.com' } as const;

async function requestDomains(api: Api, slug: string): Promise<z.output<typeof list>> {
  return api.call({ path: `/api/apps/${slug}/domains`, schema: list, feature });
}

function formatPath(slug: string, name: string): string {
  return `/api/apps/${slug}/domains/${encodeURIComponent(name)}`;
}

function formatDomain(one: Domain): string[] {
  const { records } = one;
  const isDone = one.state === 'Active';
  return [
    ...formatFields([
      ['domain', one.domain],
      ['state', one.state],
      ['url', one.url],
      ['checked', one.checked_at === undefined ? undefined : formatTime(one.checked_at)],
      ['no answer', one.lookup_error],
      ['CNAME', isDone ? undefined : `${records.cname.name} → ${records.cname.value}`],
      ['or TXT', isDone ? undefined : `${records.txt.name} = ${records.txt.value}`],
      ['and address', isDone ? undefined : `with TXT alone, those of ${one.target}`],
    ]).map((line) => toHarmlessText(line)),
    toHarmlessText(one.message),
  ];
}

export const domainsList = defineCommand({
  name: 'domains list',
  group: 'Settings',
  summary: 'List the own domains of an app',
  arguments: [appArgument],
  options: { app: appOption },
  examples: ['domains list', 'domains list octo/hello --json'],
  run: async ({ values, positionals: [name] }, session) => {
    const { api, slug } = await chooseApp(session, name, values.app);
    const found = await requestDomains(api, slug);
    const { terminal } = session;
    const empty = found.offered
      ? `${slug} has no domains of its own.`
      : 'This installation does not offer own domains.';
    terminal.printResult({ app: slug, ...found }, () =>
      terminal.formatTable(
        found.domains.map(({ domain: each, state, message }) => ({ domain: each, state, message })),
        empty,
      ),
    );
    return undefined;
  },
});

export const domainsAdd = defineCommand({
  name: 'domains add',
  group: 'Settings',
  summary: 'Add an own domain to an app, and print the records that prove it',
  details: [
    'Publish one of the two records: the CNAME also points the domain at the app; with the TXT record, the domain itself must have the addresses of the app. DNS is asked again and again until it has the record.',
  ],
  arguments: [nameArgument],
  options: { app: otherAppOption },
  examples: ['domains add shop.example.com', 'moorage domains add bücher.example.com --app octo/hello --json'],
  run: async ({ values, positionals: [name = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const path = `/api/apps/${slug}/domains`;
    const added = await api.call({ method: 'POST', path, body: { domain: name }, schema: domain, feature });
    session.terminal.printResult(added, () => formatDomain(added));
    return undefined;
  },
});

const [lookMs, patienceMs] = [500, 20_000];

export const domainsCheck = defineCommand({
  name: 'domains check',
  group: 'Settings',
  summary: 'Look for the proof of a domain now',
  details: ['Waits up to 20 seconds for DNS. Ends with 1 if the app does not have the domain.'],
  arguments: [nameArgument],
  options: { app: otherAppOption },
  examples: ['domains check shop.example.com', 'domains check shop.example.com --app octo/hello --json'],
  run: async ({ values, positionals: [name = ''] }, session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const asked = await api.call({ method: 'POST', path: `${formatPath(slug, name)}/check`, schema: domain, feature });
    const checked = await waitForCheck(api, slug, asked);
    session.terminal.printResult(checked, () => formatDomain(checked));
    return ['Active', 'Issuing'].includes(checked.state) ? undefined : 1;
  },
});

async function waitForCheck(api: Api, slug: string, asked: Domain): Promise<Domain> {
  const end = Date.now() + patienceMs;
  for (;;) {
    const { domains } = await requestDomains(api, slug);
    const found = domains.find((each) => each.domain === asked.domain) ?? asked;
    const isChecked = Date.parse(found.checked_at ?? '') >= Date.parse(asked.check_requested_at);
    if (isChecked || Date.now() >= end) return found;
    await delay(lookMs);
  }
}

export const domainsRemove = defineCommand({
  name: 'domains remove',
  group: 'Settings',
  summary: 'Remove an own domain from an app',
  arguments: [nameArgument],
  options: { app: otherAppOption },
  examples: ['domains remove shop.example.com', 'domains remove shop.example.com --app octo/hello'],
  run: async ({ values, positionals: [name = ''] }, session: Session) => {
    const { api, slug } = await chooseApp(session, undefined, values.app);
    const answer = await api.call({ method: 'DELETE', path: formatPath(slug, name), schema: anyAnswer, feature });
    session.terminal.printResult(answer, () => toHarmlessText(answer.message ?? `Removed ${name} from ${slug}.`));
    return undefined;
  },
});
