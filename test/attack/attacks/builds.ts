// Attacks of authors: repositories that mean harm to the builder, the review, or whoever waits behind them.
import { z } from 'zod';
import { judged, notTried, type Attack } from '../attack.ts';
import type { Victim } from '../victim.ts';

const pods = z.object({ items: z.array(z.object({ metadata: z.object({ name: z.string() }) })) });

async function listPods(victim: Victim, app: string): Promise<number> {
  const namespace = await victim.buildsNamespace();
  const selector = `moorage.dev/app=${app}`;
  return pods.parse(JSON.parse(await victim.kubectl(['-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json'])))
    .items.length;
}

const staged: Attack = {
  name: 'a step that prints a fake platform fault is rebuilt repeatedly',
  needs: 'git',
  run: async (victim) => {
    const app = 'attack-staged';
    const { live, output } = await victim.submit(app, {
      Dockerfile:
        'FROM debian:bookworm-slim\nRUN echo "npm error network request to https://registry.npmjs.org failed, reason: read ECONNRESET"; exit 1\n',
    });
    const made = await listPods(victim, app);
    return judged(!live && made <= 2, `It was ${/rule +\S+/.exec(output)?.[0] ?? 'not rejected'}, with ${made} pods.`);
  },
};

const otherImage: Attack = {
  name: "a build reads another app's image, by its name and digest",
  needs: 'git',
  run: async (victim) => {
    const { status } = await victim.liveApp();
    const image = status?.built?.image ?? '';
    const proxy = (await victim.settings())['MOORAGE_REGISTRY_PROXY'] ?? '';
    const names = [image, image.replace(/^[^/]+/, proxy), image.replace(/^[^/]+\//, '')];
    const submissions = await Promise.all(
      names.map((each, index) => victim.submit(`attack-image-${index}`, { Dockerfile: `FROM ${each}\n` })),
    );
    const read = names.filter((_name, index) => {
      const { live, output } = submissions[index] ?? { live: true, output: '' };
      return live || !/build\/base-image/.test(output);
    });
    return judged(
      read.length === 0,
      read.length === 0 ? `Refused by ${names.length} names.` : `Not refused: ${read.join(', ')}.`,
    );
  },
};

const gitSource: Attack = {
  name: "a Dockerfile runs git next to the builder, outside the steps' sandbox",
  needs: 'git',
  run: async (victim) => {
    const { output } = await victim.submit('attack-git', {
      Dockerfile: 'FROM debian:bookworm-slim\nADD https://github.com/octocat/Hello-World.git /src\n',
    });
    return judged(
      /build\/git-source/.test(output),
      `The build ended by ${/rule +\S+/.exec(output)?.[0] ?? 'nothing'}.`,
    );
  },
};

/** What a step of a build sees of repositories on the git server inside the cluster: one line for each address. */
const readOthers = `
const addresses = process.argv.slice(1);
for (const address of addresses)
  await fetch(address + '/info/refs?service=git-upload-pack', { signal: AbortSignal.timeout(10_000) }).then(
    ({ status }) => console.log('git answered ' + status),
    () => console.log('git did not answer'),
  );
process.exit(1);
`;

const otherRepository: Attack = {
  name: "a step of a build reads another app's repository on the git server of the cluster",
  needs: 'git',
  run: async (victim) => {
    const { MOORAGE_GIT_INSECURE_HOSTS: hosts = '' } = await victim.environmentOf('moorage-operator');
    const [host = ''] = hosts.split(',');
    if (host === '') return notTried('no git server inside the cluster is allowed.');
    await victim.push('attack-git-other', {});
    // At the port for builds, and at those that are not for them.
    const addresses = [host, `${host}:8080`, `${host}:8081`].map((each) => `http://${each}/local/attack-git-other.git`);
    const step = JSON.stringify(['node', '--input-type=module', '-e', readOthers, ...addresses]);
    const { output } = await victim.submit('attack-git-reader', {
      Dockerfile: `FROM node:24-bookworm-slim\nRUN ${step}\n`,
    });
    const seen: readonly string[] = output.match(/git (?:answered \d+|did not answer)/g) ?? [];
    if (seen.length === 0) return notTried('what the step saw is not in the log.');
    return judged(!seen.includes('git answered 200'), `From its step: ${[...new Set(seen)].join(', ')}.`);
  },
};

const jobs = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      spec: z.object({
        template: z.object({
          spec: z.object({
            volumes: z.array(z.looseObject({})).default([]),
            containers: z.array(
              z.object({
                env: z
                  .array(
                    z.object({ name: z.string(), value: z.string().optional(), valueFrom: z.unknown().optional() }),
                  )
                  .default([]),
              }),
            ),
          }),
        }),
      }),
    }),
  ),
});

const repositories = z.object({ image: z.string(), cache: z.string().optional() });

type Pipeline = z.output<typeof jobs>['items'][number];

/** The one that was made last: those of before an upgrade stay as they were. */
async function newestPipeline(victim: Victim): Promise<Pipeline> {
  const namespace = await victim.buildsNamespace();
  const sorted = ['get', 'jobs', '--sort-by=.metadata.creationTimestamp', '-o', 'json'];
  const newest = jobs.parse(JSON.parse(await victim.kubectl(['-n', namespace, ...sorted]))).items.at(-1);
  if (newest === undefined) throw new Error('there is no pipeline to look at: submit an app first');
  return newest;
}

const account: Attack = {
  name: "a build holds the installation's account of the registry",
  needs: 'kubectl',
  run: async (victim) => {
    const { metadata, spec } = await newestPipeline(victim);
    const { volumes, containers } = spec.template.spec;
    const isGiven =
      volumes.some((each) => 'secret' in each) ||
      containers.some(({ env }) => env.some((each) => each.valueFrom !== undefined));
    return judged(!isGiven, `The newest pipeline, ${metadata.name}, is given ${isGiven ? 'a' : 'no'} Secret.`);
  },
};

const withUid = /\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const namesake: Attack = {
  name: 'an app builds on layers or images of an earlier app with its name',
  needs: 'kubectl',
  run: async (victim) => {
    const { spec } = await newestPipeline(victim);
    const value = spec.template.spec.containers[0]?.env.find(({ name }) => name === 'MOORAGE_PIPELINE')?.value;
    const { image, cache } = repositories.parse(value === undefined ? undefined : JSON.parse(value));
    return judged(
      withUid.test(image) && (cache === undefined || withUid.test(cache)),
      `The newest pipeline makes ${image}, with the layers of ${cache ?? 'none'}.`,
    );
  },
};

const licence: Attack = {
  name: 'the review trusts an SPDX tag next to a text that forbids use',
  needs: 'git',
  run: async (victim) => {
    const { live, output } = await victim.submit('attack-licence', {
      LICENSE:
        'SPDX-License-Identifier: MIT\n\nCopyright 2026 Nobody. All rights reserved. No part of this software may be used, copied, run or hosted by anyone without written permission. Commercial use is prohibited.\n',
      'index.html': '<!doctype html><title>licence</title><p>hello\n',
    });
    return judged(!live && /licen[cs]e/.test(output), `The review said ${/rule +\S+/.exec(output)?.[0] ?? 'nothing'}.`);
  },
};

export const buildAttacks: readonly Attack[] = [
  staged,
  otherImage,
  gitSource,
  otherRepository,
  account,
  namesake,
  licence,
];
