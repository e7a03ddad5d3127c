// Every tool over the gateway of a real cluster, with the services behind them as pods: what each makes is opened, and
// each says what it cost. What needs the internet is told apart from what does not.
import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, it, test } from 'vitest';
import { z } from 'zod';
import { demoNotice } from '../../api/models/router/demo-router.ts';
import { baseUrl, get, kubectl, systemNamespace } from '../support/cluster.ts';
import { columns, look } from '../support/services/pdf-translator.ts';
import { callOnCluster, type ClusterCall } from '../support/tools/cluster-call.ts';
import { spokenSentence, startPublicSite, type PublicSite } from '../support/tools/public-site.ts';

const listed = z.object({
  tools: z.array(z.looseObject({ name: z.string(), on: z.boolean(), off_because: z.string().optional() })),
});
const words = (text: string): string => text.toLowerCase().replaceAll(/[^a-z ]/g, '');
const textOf = (pdf: Uint8Array): string =>
  look(pdf)
    .flatMap((page) => page.words.map(({ text }) => text))
    .join(' ');
const field = ({ envelope }: ClusterCall, name: string): unknown => envelope.result?.[name];
/** Colour of the middle of the left edge. */
async function edge(picture: Uint8Array): Promise<number[]> {
  const { data, info } = await sharp(picture).removeAlpha().raw().toBuffer({ resolveWithObject: true });
  return [...data.subarray(info.width * (info.height >> 1) * 3).subarray(0, 3)];
}

interface Case {
  readonly input: (url: string) => object;
  readonly options?: Readonly<Record<string, string>>;
  readonly check: (call: ClusterCall) => void | Promise<void>;
}

const chart = {
  $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
  mark: 'bar',
  data: { values: [{ year: '1956', ships: 1 }, { year: '1976', ships: 48 }] },
  encoding: { x: { field: 'year', type: 'ordinal' }, y: { field: 'ships', type: 'quantitative' } },
};

/** Tools that need no internet, but for those below. */
const cases: Readonly<Record<string, Case>> = {
  fetch_page: {
    input: (url) => ({ url: `${url}/page.html` }),
    check: (call) => {
      assert.match(JSON.stringify(call.envelope.result), /first container ship sailed in 1956/);
    },
  },
  render_diagram: {
    input: () => ({ source: 'flowchart LR\n  ship --> quay', kind: 'mermaid', format: 'png' }),
    check: async ({ file }) => {
      const { width = 0, format } = await sharp(file).metadata();
      assert.ok(format === 'png' && width > 100, `${String(format)} ${width}`);
    },
  },
  check_grammar: {
    input: () => ({ text: 'Das ist ein Fehlerr.', language: 'de' }),
    check: (call) => {
      assert.deepEqual([field(call, 'checker'), field(call, 'corrected')], ['languagetool', 'Das ist ein Fehler.']);
    },
  },
  transcribe_audio: {
    input: (url) => ({ url: `${url}/spoken.wav`, language: 'en' }),
    check: (call) => {
      assert.equal(words(String(field(call, 'text'))), words(spokenSentence));
    },
  },
  convert_to_pdf: {
    input: () => ({ markdown: '# Packing list\n\n| box | holds |\n|---|---|\n| 1 | **lamps** |\n| 2 | 灯 |\n' }),
    check: ({ file }) => {
      for (const word of ['Packing list', 'lamps', '灯']) assert.ok(textOf(file).includes(word), textOf(file));
    },
  },
  translate_text: {
    input: () => ({ text: 'Ships in the harbour', to: 'German' }),
    check: (call) => {
      assert.ok(JSON.stringify(call.envelope.result).includes(demoNotice));
    },
  },
  ask_model: {
    input: () => ({ prompt: 'Say: iron anchor' }),
    check: (call) => {
      assert.ok(JSON.stringify(call.envelope.result).includes(demoNotice));
    },
  },
  compare_models: {
    input: () => ({ prompt: 'Say: strong chain' }),
    check: (call) => {
      assert.ok(JSON.stringify(call.envelope.result).split(demoNotice).length > 3);
    },
  },
  list_apps: {
    input: () => ({}),
    check: (call) => {
      assert.match(JSON.stringify(call.envelope.result), /hello/);
    },
  },
  translate_pdf: {
    input: (url) => ({ url: `${url}/columns.pdf`, to: 'German' }),
    options: { wait: '60' },
    check: ({ file }) => {
      const before = look(columns());
      const after = look(file);
      assert.deepEqual(after.map(({ size }) => size), before.map(({ size }) => size));
      for (const { words: set } of after) {
        const text = set.map((word) => word.text).join(' ');
        assert.ok(text.includes('demo router'), text);
        const body = set.filter(({ y }) => y > 115 && y < 420);
        assert.ok(body.some(({ x }) => x < 290) && body.some(({ x }) => x > 322), 'there are two columns');
        assert.deepEqual(body.filter(({ x }) => x > 295 && x < 320), [], 'nothing stands between the columns');
      }
    },
  },
  make_slides: {
    input: () => ({ outline: '# Container shipping\n## Beginnings\n- 1956: Ideal X\n## Today\n- 24,000 on one ship' }),
    check: ({ file }) => {
      assert.equal(Buffer.from(file.subarray(0, 2)).toString(), 'PK');
      assert.ok(file.length > 10_000);
    },
  },
  memory: {
    input: () => ({ action: 'set', key: 'home port', value: 'Hamburg' }),
    options: { s: 'e2e-tools' },
    check: async () => {
      const read = await callOnCluster('memory', { action: 'get', key: 'home port' }, { s: 'e2e-tools' });
      assert.match(JSON.stringify(read.envelope.result), /Hamburg/);
    },
  },
  screenshot: {
    input: (url) => ({ url: `${url}/page.html`, width: 640, height: 360 }),
    check: async ({ file }) => {
      const { width, height } = await sharp(file).metadata();
      assert.deepEqual([width, height, ...(await edge(file))], [640, 360, 0, 0x33, 0x66]);
    },
  },
  ocr_image: {
    input: (url) => ({ url: `${url}/letters.png` }),
    check: (call) => {
      assert.match(String(field(call, 'text')), /HARBOUR MASTER\s+Berth 42/);
    },
  },
  make_chart: {
    input: () => ({ spec: chart, format: 'png' }),
    check: async ({ file }) => {
      assert.equal((await sharp(file).metadata()).format, 'png');
    },
  },
  extract_pdf: {
    input: (url) => ({ url: `${url}/columns.pdf` }),
    check: (call) => {
      assert.match(JSON.stringify(call.envelope.result), /study of moorings.*study of anchors/s);
    },
  },
  run_code: {
    input: () => ({ code: '[...Array(5).keys()].map((n) => n ** 2)' }),
    check: (call) => {
      assert.match(JSON.stringify(call.envelope.result), /\[0,1,4,9,16\]/);
    },
  },
  convert_image: {
    input: (url) => ({ url: `${url}/letters.png`, format: 'webp', width: 200 }),
    check: async ({ file }) => {
      const { format, width } = await sharp(file).metadata();
      assert.deepEqual([format, width], ['webp', 200]);
    },
  },
  validate_json: {
    input: () => ({ schema: { type: 'object', required: ['port'] }, data: { ship: 'Ideal X' } }),
    check: (call) => {
      assert.equal(field(call, 'valid'), false);
    },
  },
};
/** Nothing on this machine can stand in for what they ask. */
const fromTheInternet = ['web_search', 'deep_research', 'lookup_citation'];

describe('tools on a cluster', () => {
  let site: PublicSite;
  let tools: z.output<typeof listed>['tools'];

  beforeAll(async () => {
    site = await startPublicSite();
    const { body } = await get(new URL('/t', baseUrl), { headers: { accept: 'application/json' } });
    ({ tools } = listed.parse(JSON.parse(body)));
  });
  afterAll(() => site.stop());

  it('all are on, but for a search where there is no internet', () => {
    assert.deepEqual(tools.map(({ name }) => name).toSorted(), [...Object.keys(cases), ...fromTheInternet].toSorted());
    const off = tools.filter(({ on }) => !on);
    assert.ok([0, 2].includes(off.length), off.map(({ name }) => name).join(', '));
    for (const { name, off_because } of off) {
      assert.ok(['web_search', 'deep_research'].includes(name), name);
      assert.match(off_because ?? '', /no internet/);
    }
  });

  for (const [name, { input, options = {}, check }] of Object.entries(cases)) {
    it(`${name} makes what it says, and says what it cost`, async () => {
      const call = await callOnCluster(name, input(site.url), options);
      assert.equal(call.status < 300, true, JSON.stringify(call.envelope));
      assert.equal(typeof call.envelope.cost_usd, 'number', JSON.stringify(call.envelope));
      await check(call);
    });
  }

  it('a search that is off says why, and costs nothing', async () => {
    const off = tools.filter(({ on }) => !on).map(({ name }) => name);
    for (const [name, input] of [
      ['web_search', { query: 'container shipping' }],
      ['deep_research', { question: 'When did container shipping begin?' }],
    ] as const) {
      const { status, envelope } = await callOnCluster(name, input, { wait: '60' });
      if (off.includes(name)) assert.match(`${status} ${envelope.detail ?? ''}`, /^503 .*no internet/);
      else assert.ok(status < 300, JSON.stringify(envelope));
    }
  });

  it('a citation is found, or its source is named as out of reach', async () => {
    const hasInternet = await lookup('api.crossref.org').then(
      () => true,
      () => false,
    );
    const { status, envelope } = await callOnCluster('lookup_citation', { doi: '10.1038/171737a0' });
    if (hasInternet) assert.match(JSON.stringify(envelope.result), /Molecular Structure of Nucleic Acids/i);
    else assert.ok(status >= 500 && (envelope.detail ?? '').includes('crossref'), JSON.stringify(envelope));
  });
});

const podList = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      spec: z.object({
        automountServiceAccountToken: z.boolean().optional(),
        securityContext: z.looseObject({ runAsNonRoot: z.boolean() }),
        containers: z.array(
          z.object({
            securityContext: z.looseObject({ readOnlyRootFilesystem: z.boolean() }),
            resources: z.object({ limits: z.object({ memory: z.string() }) }),
          }),
        ),
      }),
    }),
  ),
});

test('services behind tools are confined, and take 6 GiB at most', async () => {
  const services = 'app.kubernetes.io/component in (speech,languagetool,pdftranslator,gotenberg,gotenberg-proxy,searxng)';
  const { items } = podList.parse(
    JSON.parse(await kubectl('-n', systemNamespace, 'get', 'pods', '-l', services, '-o', 'json')),
  );
  assert.ok(items.length >= 5, items.map(({ metadata }) => metadata.name).join(', '));
  let mebibytes = 0;
  for (const { metadata, spec } of items) {
    assert.equal(spec.automountServiceAccountToken, false, metadata.name);
    assert.equal(spec.securityContext.runAsNonRoot, true, metadata.name);
    for (const { securityContext, resources } of spec.containers) {
      assert.equal(securityContext.readOnlyRootFilesystem, true, metadata.name);
      const [, amount = '', unit] = /^(\d+)(Mi|Gi)$/.exec(resources.limits.memory) ?? [];
      mebibytes += Number(amount) * (unit === 'Gi' ? 1024 : 1);
    }
  }
  assert.ok(mebibytes > 0 && mebibytes <= 6 * 1024, `${mebibytes} MiB`);
});
