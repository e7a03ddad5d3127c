// `npm run show:tools -- [folder]`: calls each of the 22 tools once over the application, with the real services behind
// them on loopback, prints
// what came and what it cost, and leaves the files in the folder to be looked at. What stands in for the internet is
// named in the table.
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { Ledger } from '../../api/billing/ledger/ledger.ts';
import { readCatalog } from '../../api/models/catalog.ts';
import { GuardedFetcher } from '../../api/tools/fetch/fetcher.ts';
import { createLookupCitationTool } from '../../api/tools/builtin/lookup-citation/lookup-citation.ts';
import { createBuiltinTools } from '../../api/tools/builtin/all.ts';
import { readCommandLine } from '../../lib/command-line.ts';
import { reply, startScriptedRouter } from '../support/models/scripted-router.ts';
import { page, startWeb, type Web } from '../support/tools/fetch/web.ts';
import { lettersPng } from '../support/tools/letters.ts';
import { createAnswer } from '../support/tools/model-lab.ts';
import { sampleToolApp, type ToolSample } from '../support/tools/sample.ts';
import { startPostgres } from '../support/ledger/postgres.ts';
import { startGotenberg } from '../support/services/gotenberg.ts';
import { startLanguageTool } from '../support/services/languagetool.ts';
import { modelWords } from '../support/tools/model-words.ts';
import { columns, startPdfTranslator } from '../support/services/pdf-translator.ts';
import { createSpeech, speechModel, startSpeech } from '../support/services/speech.ts';
import { shownCalls, type ShownCall } from './calls.ts';

const usage = `usage: npm run show:tools -- [FOLDER]

  FOLDER   where to leave the files that the tools make (default: moorage-tools in the temporary folder)`;

const folder = readCommandLine(
  { usage, options: {}, positionals: 1 },
  ({ positionals: [named] }) => named ?? join(tmpdir(), 'moorage-tools'),
);
const answered = z.looseObject({
  result: z.looseObject({}).optional(),
  cost_usd: z.number().optional(),
  cost_source: z.string().optional(),
  latency_ms: z.number().optional(),
  detail: z.string().optional(),
  job: z.looseObject({ poll_url: z.url() }).optional(),
  artifact: z
    .looseObject({ media_type: z.string(), file_name: z.string(), bytes: z.int(), url: z.string().optional() })
    .optional(),
});

async function startSite(): Promise<Web> {
  const html =
    '<title>Container shipping</title><h1 style="color:#036">Container shipping</h1><p>The first container ship sailed in 1956 from Newark to Houston, with fifty-eight containers.</p>';
  const work = {
    DOI: '10.1038/171737a0',
    URL: 'https://doi.org/10.1038/171737a0',
    type: 'journal-article',
    title: ['Molecular Structure of Nucleic Acids'],
    author: [{ given: 'J. D.', family: 'Watson' }],
    issued: { 'date-parts': [[1953, 4]] },
  };
  const found = (url: string): string =>
    JSON.stringify({
      results: [
        {
          url: `${url}/page.html`,
          title: 'Container shipping',
          content: 'The first container ship sailed in 1956.',
          engine: 'stand-in',
        },
      ],
      unresponsive_engines: [],
    });
  const web: Web = await startWeb({
    '/page.html': page('text/html; charset=utf-8', html),
    '/spoken.mp3': page(
      'audio/mpeg',
      await createSpeech('The ship left the harbor at noon and sailed to the island.', 'mp3'),
    ),
    '/columns.pdf': page('application/pdf', columns()),
    '/letters.png': page('image/png', await lettersPng(['HARBOUR MASTER', 'Berth 42'])),
    '/works/10.1038%2F171737a0': page('application/json', JSON.stringify({ status: 'ok', message: work })),
    '/search': (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(found(web.url));
    },
  });
  return web;
}

function short(value: object | string): string {
  const text = JSON.stringify(value);
  return (text.length > 150 ? `${text.slice(0, 150)}…` : text).replaceAll('|', '\\|');
}

/** Fetches the file of an answer by its link, and keeps it. @returns its name in the folder */
async function keep(
  sample: ToolSample,
  tool: string,
  artifact: z.output<typeof answered>['artifact'],
): Promise<string> {
  if (artifact?.url === undefined) return '';
  const bytes = new Uint8Array(await (await sample.request(new URL(artifact.url).pathname)).arrayBuffer());
  if (bytes.length !== artifact.bytes) throw new Error(`${tool}: ${bytes.length} bytes of ${artifact.bytes}`);
  const file = `${tool}-${artifact.file_name}`;
  writeFileSync(join(folder, file), bytes);
  return file;
}

/** The answer of a call, waited for where it became a job. */
async function settled(sample: ToolSample, response: Response): Promise<z.output<typeof answered>> {
  const answer = answered.parse(await response.json());
  if (answer.job === undefined || answer.result !== undefined || answer.detail !== undefined) return answer;
  const { pathname, search } = new URL(answer.job.poll_url);
  return settled(
    sample,
    await sample.request(
      `${pathname}?${new URLSearchParams([...new URLSearchParams(search), ['wait', '30']]).toString()}`,
    ),
  );
}

/** Calls once, and gives a row of the table. */
async function show(sample: ToolSample, { tool, input, options = {}, standIn = '' }: ShownCall): Promise<string> {
  const response = await sample.request(`/t/${tool}?${new URLSearchParams(options).toString()}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input),
  });
  const { result, artifact, cost_usd, cost_source, latency_ms, detail } = await settled(sample, response);
  const cells = [
    tool,
    response.status,
    short(result ?? detail ?? ''),
    `${cost_usd ?? ''} ${cost_source ?? ''}`,
    latency_ms,
    await keep(sample, tool, artifact),
    standIn,
  ];
  return `| ${cells.join(' | ')} |`;
}

mkdirSync(folder, { recursive: true });
const router = await startScriptedRouter({
  '/key': reply(200, '{"data":{}}'),
  ...Object.fromEntries(readCatalog().models.map(({ upstream }) => [upstream, createAnswer(modelWords, '0.000123')])),
});
const web = await startSite();
const [postgres, gotenberg, languageTool, speech, translator] = await Promise.all([
  startPostgres({ durable: false }),
  startGotenberg({ allow: [web.host] }, ['--log-level=error']),
  startLanguageTool(),
  startSpeech(),
  startPdfTranslator(),
]);
const sample = await sampleToolApp({
  environment: {
    DATABASE_URL: await postgres.createDatabase('tools'),
    MOORAGE_ROUTER_URL: router.url,
    MOORAGE_ROUTER_KEY: 'sk-platform-1234',
    MOORAGE_FREE_QUOTA_USD: '1',
    MOORAGE_SPEECH_MODEL: speechModel,
    MOORAGE_SEARXNG_URL: web.url,
    MOORAGE_GOTENBERG_URL: gotenberg.url,
    MOORAGE_LANGUAGETOOL_URL: languageTool.url,
    MOORAGE_SPEECH_URL: speech.url,
    MOORAGE_PDF_TRANSLATOR_URL: translator.url,
  },
  fetcher: new GuardedFetcher({ allow: [web.host] }),
  make: (services) =>
    createBuiltinTools(services).map((tool) =>
      tool.name === 'lookup_citation'
        ? createLookupCitationTool(services, { crossref: web.url, arxiv: web.url })
        : tool,
    ),
});
try {
  process.stdout.write('| tool | status | answer | USD | ms | file | stands in |\n|---|---|---|---|---|---|---|\n');
  for (const call of shownCalls(web)) process.stdout.write(`${await show(sample, call)}\n`);
  const { database } = sample.models.ledger.get();
  const faults = await new Ledger(database).audit();
  const [booked] = await database.query(
    {
      name: 'shown',
      text: 'select coalesce(sum(cost), 0)::text as total from ledger.usage',
      row: z.object({ total: z.string() }),
    },
    [],
  );
  process.stdout.write(
    `\nbooked in all: ${booked?.total ?? ''} USD; audit of the ledger: ${faults.length === 0 ? 'no fault' : faults.join('; ')}\nfiles: ${folder}\n`,
  );
} finally {
  await sample.stop();
  await Promise.all([
    web.close(),
    router.close(),
    gotenberg.stop(),
    languageTool.stop(),
    speech.stop(),
    translator.stop(),
  ]);
  await postgres.stop();
}
process.exit(0);
