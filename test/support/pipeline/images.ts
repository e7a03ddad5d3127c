// Asks a pushed image, by way of the registry and of a build step that starts it, whether it does what its author
// wants.
import assert from 'node:assert/strict';
import { z } from 'zod';
import type { Lab } from './lab.ts';
import type { TestRegistry } from './registry.ts';

const manifest = z.object({
  config: z.object({ digest: z.string() }),
  layers: z.array(z.object({ digest: z.string(), size: z.int(), mediaType: z.string() })),
});
const configuration = z.object({
  config: z.object({
    User: z.string().optional(),
    Cmd: z.array(z.string()).nullish(),
    Env: z.array(z.string()).nullish(),
  }),
  history: z.array(z.object({ created_by: z.string().optional() })).default([]),
});

export type ImageConfiguration = z.infer<typeof configuration>;

async function ask(registry: TestRegistry, path: string): Promise<unknown> {
  const answer = await fetch(`http://${registry.host}${path}`, {
    headers: {
      authorization: registry.authorization,
      accept: 'application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json',
    },
  });
  assert.equal(answer.status, 200, path);
  return await answer.json();
}

/** Manifest and configuration of `host/repository@digest`. */
export async function inspect(
  registry: TestRegistry,
  image: string,
): Promise<{ manifest: z.infer<typeof manifest>; configuration: ImageConfiguration }> {
  const [name = '', digest = ''] = image.slice(registry.host.length + 1).split('@');
  const found = manifest.parse(await ask(registry, `/v2/${name}/manifests/${digest}`));
  return {
    manifest: found,
    configuration: configuration.parse(await ask(registry, `/v2/${name}/blobs/${found.config.digest}`)),
  };
}

/** Starts the image's command as its user in a build step and gives what it answers to GET `path`. */
export async function answerOf(lab: Lab, image: string, port: number, path: string): Promise<string> {
  const {
    configuration: { config },
  } = await inspect(lab.registry, image);
  const command = (config.Cmd ?? []).map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ');
  return lab.buildBeside(
    [
      `FROM ${image}`,
      // A network of its own: another process of this machine may listen on the same port.
      "RUN --network=none <<'SCRIPT'",
      `${command} > /tmp/app.log 2>&1 &`,
      "cat > /tmp/ask.sh <<'ASK'",
      'for try in $(seq 150); do',
      // In one write: bash writes line by line, and a server that answers the first line ends the second one.
      `  if exec 3<>/dev/tcp/127.0.0.1/${port}; then printf 'GET ${path} HTTP/1.0\\r\\nHost: app\\r\\n\\r\\n' | dd bs=4096 iflag=fullblock >&3; cat <&3; echo; echo user=$(id -u); exit 0; fi`,
      '  sleep 0.2',
      'done',
      'cat /tmp/app.log; exit 1',
      'ASK',
      'bash /tmp/ask.sh 2>/dev/null',
      'SCRIPT',
      '',
    ].join('\n'),
  );
}
