// Every tool over the gateway of a real cluster, with the services behind them as pods: what each makes is opened, and
// each says what it cost. What needs the internet is set apart from what does not.
import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, it, test } from 'vitest';
import { z } from 'zod';
import { demoNotice } from '../../api/models/router/demo-router.ts';
import { memorySession, shownCalls } from '../show/calls.ts';
import { baseUrl, get, runKubectl, systemNamespace } from '../support/cluster.ts';
import { columns, look, type PageLayout } from '../support/services/pdf-translator.ts';
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

type Check = (call: ClusterCall) => void | Promise<void>;

const saysDemo: Check = (call) => {
  assert.ok(JSON.stringify(call.envelope.result).includes(demoNotice));
};

/** What is looked at of tools that need no internet. */
const checks: Readonly<Record<string, Check>> = {
  fetch_page: (call) => {
    assert.match(JSON.stringify(call.envelope.result), /first container ship sailed in 1956/);
  },
  render_diagram: async ({ file }) => {
    const { width, format } = await sharp(file).metadata();
    assert.ok(format === 'png' && width > 100, `${format} ${width}`);
  },
  check_grammar: (call) => {
    assert.deepEqual([field(call, 'checker'), field(call, 'corrected')], ['languagetool', 'Das ist ein Fehler.']);
  },
  transcribe_audio: (call) => {
    assert.equal(words(String(field(call, 'text'))), words(spokenSentence));
  },
  convert_to_pdf: ({ file }) => {
    for (const word of ['Packing list', 'lamps', 'ropes']) assert.ok(textOf(file).includes(word), textOf(file));
  },
  translate_text: saysDemo,
  ask_model: saysDemo,
  compare_models: (call) => {
    assert.ok(JSON.stringify(call.envelope.result).split(demoNotice).length > 3);
  },
  list_apps: (call) => {
    assert.match(JSON.stringify(call.envelope.result), /hello/);
  },
  translate_pdf: ({ file }) => {
    const before = look(columns());
    const after = look(file);
    assert.deepEqual(
      after.map(({ size }) => size),
      before.map(({ size }) => size),
    );
    for (const page of after) inTwoColumns(page);
  },
  make_slides: ({ file }) => {
    assert.equal(Buffer.from(file.subarray(0, 2)).toString(), 'PK');
    assert.ok(file.length > 10_000);
  },
  memory: async () => {
    const read = await callOnCluster('memory', { action: 'get', key: 'home port' }, { s: memorySession });
    assert.match(JSON.stringify(read.envelope.result), /Hamburg/);
  },
  screenshot: async ({ file }) => {
    const { width, height } = await sharp(file).metadata();
    assert.deepEqual([width, height, ...(await edge(file))], [640, 360, 0, 0x33, 0x66]);
  },
  ocr_image: (call) => {
    assert.match(String(field(call, 'text')), /HARBOUR MASTER\s+Berth 42/);
  },
  make_chart: async ({ file }) => {
    assert.equal((await sharp(file).metadata()).format, 'png');
  },
  extract_pdf: (call) => {
    assert.match(JSON.stringify(call.envelope.result), /study of moorings.*study of anchors/s);
  },
  run_code: (call) => {
    assert.match(JSON.stringify(call.envelope.result), /\[0,1,4,9,16\]/);
  },
  convert_image: async ({ file }) => {
    const { format, width } = await sharp(file).metadata();
    assert.deepEqual([format, width], ['webp', 200]);
  },
  validate_json: (call) => {
    assert.equal(field(call, 'valid'), false);
  },
};

/** The demo router's words stand where the passages stood, which the blue box and the columns frame. */
function inTwoColumns({ words: set }: PageLayout): void {
  const text = set.map((word) => word.text).join(' ');
  assert.ok(text.includes('demo router'), text);
  const body = set.filter(({ y }) => y > 115 && y < 420);
  assert.ok(body.some(({ x }) => x < 290) && body.some(({ x }) => x > 320), 'there are two columns');
  assert.deepEqual(
    body.filter(({ x }) => x > 295 && x < 320),
    [],
    'nothing stands between the columns',
  );
}

/** Nothing on this machine can stand in for what they ask. */
const searches = ['web_search', 'deep_research'];
const fromTheInternet = [...searches, 'lookup_citation'];

let site: PublicSite;
beforeAll(async () => {
  site = await startPublicSite();
});
afterAll(() => site.stop());

describe('tools on a cluster', () => {
  let tools: z.output<typeof listed>['tools'];

  beforeAll(async () => {
    const { body } = await get(new URL('/t', baseUrl), { headers: { accept: 'application/json' } });
    ({ tools } = listed.parse(JSON.parse(body)));
  });

  it('are all on, except search without internet access', () => {
    assert.deepEqual(tools.map(({ name }) => name).toSorted(), [...Object.keys(checks), ...fromTheInternet].toSorted());
    const off = tools.filter(({ on }) => !on);
    assert.ok([0, 2].includes(off.length), off.map(({ name }) => name).join(', '));
    for (const { name, off_because } of off) {
      assert.ok(searches.includes(name), name);
      assert.match(off_because ?? '', /no internet/);
    }
  });

  for (const [name, check] of Object.entries(checks)) {
    it(`${name} creates what it describes, and reports its cost`, async () => {
      const shown = shownCalls(site).find(({ tool }) => tool === name);
      assert.ok(shown);
      const call = await callOnCluster(name, shown.input, shown.options);
      assert.ok(call.status < 300, JSON.stringify(call.envelope));
      assert.equal(typeof call.envelope.cost_usd, 'number', JSON.stringify(call.envelope));
      await check(call);
    });
  }

  it('a search that is off explains why, and costs nothing', async () => {
    const off = tools.filter(({ on }) => !on).map(({ name }) => name);
    for (const { tool, input, options } of shownCalls(site).filter((each) => searches.includes(each.tool))) {
      const { status, envelope } = await callOnCluster(tool, input, options);
      if (off.includes(tool)) assert.match(`${status} ${envelope.detail ?? ''}`, /^503 .*no internet/);
      else assert.ok(status < 300, JSON.stringify(envelope));
    }
  });

  it('finds a citation, or reports its source as unreachable', async () => {
    const hasInternet = await lookup('api.crossref.org').then(
      () => true,
      () => false,
    );
    const { status, envelope } = await callOnCluster('lookup_citation', { doi: '10.1038/171737a0' });
    if (hasInternet) assert.match(JSON.stringify(envelope.result), /Molecular Structure of Nucleic Acids/i);
    else assert.ok(status >= 500 && (envelope.detail ?? '').includes('crossref'), JSON.stringify(envelope));
  });
});

describe('what a service compromised by its input can access', { concurrent: true }, () => {
  /** Which of the addresses its pod reaches, its user, and what else it finds, a word each. */
  const found = async (service: string): Promise<string[]> => {
    const { hostname, port } = new URL(site.url);
    const cluster = await runKubectl(
      '-n',
      'default',
      'get',
      'service',
      'kubernetes',
      '-o',
      'jsonpath={.spec.clusterIP}',
    );
    const api = await runKubectl(
      '-n',
      systemNamespace,
      'get',
      'service',
      'moorage-api',
      '-o',
      'jsonpath={.spec.clusterIP}',
    );
    const script = [
      `for at in ${hostname}/${port} ${cluster}/443 ${api}/80; do (timeout 3 bash -c "exec 3<>/dev/tcp/$at" 2>/dev/null && echo "$at") & done; wait`,
      '[ "$(id -u)" = 0 ] && echo root',
      'touch /x 2>/dev/null && echo writable',
      '[ -e /var/run/secrets/kubernetes.io ] && echo token',
      'true',
    ].join('; ');
    const out = await runKubectl(
      '-n',
      systemNamespace,
      'exec',
      `deploy/moorage-${service}`,
      '--',
      'bash',
      '-c',
      script,
    );
    return out.split('\n').filter((line) => line !== '');
  };

  it("only Gotenberg's proxy reaches the public internet, and nothing else", async () => {
    assert.deepEqual(await found('gotenberg-proxy'), ['44.128.0.80/8080']);
  });

  for (const service of ['speech', 'languagetool', 'pdftranslator', 'gotenberg'])
    it(`${service} reaches nothing, writes only to its folder, and has no token`, async () => {
      assert.deepEqual(await found(service), []);
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

test('services behind tools are confined, and use at most 6 GiB', async () => {
  const services =
    'app.kubernetes.io/component in (speech,languagetool,pdftranslator,gotenberg,gotenberg-proxy,searxng)';
  const { items } = podList.parse(
    JSON.parse(await runKubectl('-n', systemNamespace, 'get', 'pods', '-l', services, '-o', 'json')),
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
