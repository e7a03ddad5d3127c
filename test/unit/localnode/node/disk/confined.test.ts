// What containerd reads about the runtime of apps.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { renderContainerdConfig } from '../../../../../localnode/node/daemons/containerd.ts';
import { renderConfinedRunc, buildConfinedSpec } from '../../../../../localnode/node/disk/confined.ts';

const hooked = z.strictObject({
  ociVersion: z.literal('1.3.0'),
  process: z.strictObject({ cwd: z.literal('/') }),
  hooks: z.strictObject({
    createContainer: z.tuple([
      z.strictObject({ path: z.literal('/bin/sh'), args: z.array(z.string()), timeout: z.number() }),
    ]),
  }),
});

test("starts app containers from containerd's own spec, with the hook and without its limit of open files", () => {
  const plain = { ociVersion: '1.3.0', process: { cwd: '/', rlimits: [{ type: 'RLIMIT_NOFILE' }] } };
  const [hook] = hooked.parse(JSON.parse(buildConfinedSpec(plain))).hooks.createContainer;
  assert.deepEqual(hook.args.slice(0, 2), ['sh', '-c']);
  assert.throws(() => buildConfinedSpec({}), /process/);
});

test("confines only the runtime of apps, and passes it the pod's limit", () => {
  const confined = { runc: '/x/confined-runc', spec: '/x/spec.json', annotations: ['moorage.dev/disk'] };
  const config = renderContainerdConfig('/hosts', '/cni', true, confined);
  const section = (name: string): string =>
    config.split('\n\n').find((text) => text.startsWith(`[plugins."io.containerd.cri.v1.runtime".${name}]`)) ?? '';
  assert.match(section('containerd'), /^default_runtime_name = "runc"$/m);
  assert.doesNotMatch(section('containerd.runtimes.runc'), /base_runtime_spec/);
  assert.doesNotMatch(section('containerd.runtimes.runc.options'), /confined/);
  assert.match(section('containerd.runtimes.moorage-confined'), /^base_runtime_spec = "\/x\/spec.json"$/m);
  assert.match(section('containerd.runtimes.moorage-confined'), /^pod_annotations = \["moorage.dev\/disk"\]$/m);
  assert.match(section('containerd.runtimes.moorage-confined.options'), /^BinaryName = "\/x\/confined-runc"$/m);
});

test('renders its paths into the script that replaces runc', () => {
  const script = renderConfinedRunc('/x/runc', { images: '/x/images', mounts: '/x/mounts' });
  assert.match(script, /^runc='\/x\/runc' images='\/x\/images' mounts='\/x\/mounts'$/m);
});
