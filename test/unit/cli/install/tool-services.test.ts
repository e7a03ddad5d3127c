// The services behind tools that `up` starts: their images, the chart with them, and the resources of each.
import assert from 'node:assert/strict';
import { test, describe } from 'vitest';
import { backingServices } from '../../../../api/tools/services/backing-services.ts';
import { images } from '../../../../localnode/images/catalog.ts';
import {
  getDefinition,
  readShares,
  toolServiceNames,
  formatToolSettings,
  type ToolState,
  readToolStates,
  createToolPhase,
  type ToolHost,
  type ToolServiceName,
} from '../../../../cli/install/tool-services.ts';
import { checkSteps, type Step } from '../../../../localnode/steps.ts';

test('the services are those of the API, each with an image of the catalog except SearXNG', () => {
  assert.deepEqual(toolServiceNames.toSorted(), Object.keys(backingServices).toSorted());
  const inCatalog = images.filter(({ on }) => on === 'tools').map(({ name }) => name);
  const named = toolServiceNames.map((name) => getDefinition(name).image).filter((image) => image !== undefined);
  assert.deepEqual(named.toSorted(), inCatalog.toSorted());
  assert.equal(getDefinition('searxng').image, undefined);
});

test('all services together are limited to 6 GiB and request much less', async () => {
  const { requests, limits } = await readShares(toolServiceNames);
  assert.ok(limits.memoryMebibytes <= 6 * 1024, `${limits.memoryMebibytes} MiB`);
  assert.ok(requests.memoryMebibytes <= 2 * 1024, `${requests.memoryMebibytes} MiB`);
  assert.deepEqual(await readShares(['gotenberg']), {
    requests: { cpuMilli: 20, memoryMebibytes: 480 },
    limits: { cpuMilli: 3000, memoryMebibytes: 1536 },
  });
});

test('passes running services and reasons with commas to the chart', () => {
  const states = new Map<'speech' | 'searxng', ToolState>([
    ['speech', { image: 'docker.io/moorage/speech@sha256:1' }],
    ['searxng', { offBecause: 'no internet, no search' }],
  ]);
  assert.deepEqual(formatToolSettings(states), [
    'tools.speech.enabled=true',
    'tools.speech.image=docker.io/moorage/speech@sha256:1',
    String.raw`tools.searxng.offBecause=no internet\, no search`,
  ]);
});

interface Trial {
  readonly host: ToolHost;
  readonly installed: (readonly string[])[];
  readonly waited: string[];
}

interface TrialOptions {
  readonly values?: unknown;
  readonly internet?: boolean;
  /** What the download of SearXNG ends with. */
  readonly fault?: string;
}

/** A cluster that takes all that it is given. */
function trial({ values = {}, internet = false, fault = 'no route' }: TrialOptions = {}): Trial {
  const installed: (readonly string[])[] = [];
  const waited: string[] = [];
  const host: ToolHost = {
    kubectl: async (args) => {
      waited.push(args.find((each) => each.startsWith('deployment/')) ?? '');
      return Promise.resolve('');
    },
    readValues: async () => Promise.resolve(values),
    build: async (image) => Promise.resolve({ reference: `registry/${image}@sha256:1`, bytes: 5_000_000 }),
    bringSearxng: async () => {
      if (!internet) throw new Error(fault);
      return Promise.resolve({ reference: 'docker.io/searxng/searxng:1', bytes: 1_000_000 });
    },
    install: async (settings) => {
      installed.push(settings);
      return Promise.resolve();
    },
  };
  return { host, installed, waited };
}

/** Runs the steps in their order, but for the compiler. @returns what each said */
async function runPhase(host: ToolHost, wanted: readonly ToolServiceName[]): Promise<Map<string, string>> {
  const { steps, summarize: summary } = createToolPhase(host, wanted);
  checkSteps(steps);
  const said = new Map<string, string>();
  const compiles = (step: Step): boolean => /^(modules of|compile) /.test(step.name);
  for (const step of steps.filter((each) => !compiles(each)))
    said.set(step.name, (await step.run(() => undefined)) ?? '');
  return said.set('summary', await summary());
}

describe('createToolPhase', () => {
  test('starts all, and continues without SearXNG if there is no internet', async () => {
    const { host, installed, waited } = trial();
    const said = await runPhase(host, toolServiceNames);
    const [settings = []] = installed;
    assert.ok(settings.includes('tools.speech.image=registry/speech@sha256:1'), settings.join('\n'));
    assert.ok(settings.some((each) => /^tools\.searxng\.offBecause=.*no internet/.test(each)));
    assert.ok(!settings.includes('tools.searxng.enabled=true'));
    assert.ok(waited.includes('deployment/moorage-gotenberg-proxy') && !waited.includes('deployment/moorage-searxng'));
    assert.match(said.get('tool searxng') ?? '', /^off: .*no internet/);
    assert.match(
      said.get('tool pdftranslator') ?? '',
      /^image 5 MB, memory 384 MiB requested, 1536 MiB at most: translate_pdf$/,
    );
    assert.match(said.get('summary') ?? '', /speech, languagetool, pdftranslator, gotenberg; together 1632 MiB/);
  });

  test("shows the message of SearXNG's registry if it was reached", async () => {
    const fault = '`skopeo copy` exited with code 1\n  toomanyrequests: You have reached your pull rate limit';
    const said = await runPhase(trial({ fault }).host, ['searxng']);
    assert.equal(
      said.get('tool searxng'),
      'off: the image of SearXNG could not be downloaded: toomanyrequests: You have reached your pull rate limit',
    );
  });

  test('runs SearXNG if its image is available', async () => {
    const { host, installed } = trial({ internet: true });
    await runPhase(host, ['searxng']);
    assert.ok(installed[0]?.includes('tools.searxng.image=docker.io/searxng/searxng:1'));
  });

  test('installs nothing if nothing has changed', async () => {
    const { host, installed } = trial();
    await runPhase(host, ['speech']);
    const values = {
      tools: { speech: { enabled: true, image: 'registry/speech@sha256:1' }, gotenberg: { offBecause: 'x' } },
    };
    const again = trial({ values });
    const said = await runPhase(again.host, ['speech']);
    assert.equal(installed.length, 1);
    assert.deepEqual([again.installed.length, said.get('chart with tools')], [0, 'unchanged']);
  });

  test('with none, explains how to start them', async () => {
    const { host, installed } = trial();
    const said = await runPhase(host, []);
    assert.deepEqual([installed.length, said.get('summary')], [0, 'Tool services: none (--tools all starts them).']);
  });
});

describe('readToolStates', () => {
  test('keeps running services and reasons, and turns off services that are not wanted', () => {
    const values = {
      tools: {
        speech: { enabled: true, image: 'registry/speech@sha256:0', resources: {} },
        searxng: { offBecause: 'no internet' },
        gotenberg: { enabled: true, image: 'registry/gotenberg@sha256:0' },
      },
    };
    const states = readToolStates(values, ['speech', 'searxng', 'languagetool']);
    assert.deepEqual(states.get('speech'), { image: 'registry/speech@sha256:0' });
    assert.deepEqual(states.get('searxng'), { offBecause: 'no internet' });
    assert.deepEqual(states.get('languagetool'), { offBecause: 'it is being started' });
    assert.match(JSON.stringify(states.get('gotenberg')), /offBecause.*--tools/);
    assert.equal(readToolStates(undefined, []).size, 5);
  });
});
