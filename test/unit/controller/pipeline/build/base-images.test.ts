// The images that a Dockerfile needs, and which of them the mirror lacks.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'vitest';
import { findUnpreparedImages, listBaseImages } from '../../../../../controller/pipeline/build/base-images.ts';
import { pipelineInput, type PipelineInput } from '../../../../../controller/pipeline/contract.ts';

const list = (text: string, args: readonly { name: string; value: string }[] = []): string[] =>
  listBaseImages(text, { args: [...args] });

test('lists what a Dockerfile starts from and copies from, without its own stages', () => {
  const text = [
    'FROM --platform=linux/amd64 golang:1.26-bookworm AS build',
    'RUN --mount=type=bind,from=rust:1-bookworm,target=/x --mount=type=cache,target=/y true',
    'FROM build AS test',
    'FROM docker.io/library/debian',
    'COPY --from=build /a /a',
    'COPY --from=0 /a /a',
    'COPY --chown=1000 --from=ghcr.io/astral-sh/uv:0.8 /uv /uv',
    'FROM scratch',
  ].join('\n');
  assert.deepEqual(list(text), [
    'golang:1.26-bookworm',
    'rust:1-bookworm',
    'debian:latest',
    'ghcr.io/astral-sh/uv:0.8',
  ]);
});

test('fills in arguments: of the build, then their defaults', () => {
  const text = 'ARG GO=1.26 BASE="debian"\nFROM golang:${GO}-bookworm\nFROM $BASE:12\nFROM ruby:${RUBY:-3.4}';
  assert.deepEqual(list(text), ['golang:1.26-bookworm', 'debian:12', 'ruby:3.4']);
  assert.deepEqual(list(text, [{ name: 'GO', value: '1.25' }])[0], 'golang:1.25-bookworm');
});

test('reports those that the mirror does not have, of those that are made on demand', async () => {
  const asked: string[] = [];
  const server = createServer(({ method, url, headers }, response) => {
    asked.push(`${method ?? ''} ${url ?? ''} ${headers.authorization === undefined ? '-' : 'token'}`);
    response.writeHead(url?.includes('rust') === true ? 200 : 404).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const mirror = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const input: PipelineInput = pipelineInput.parse({
    app: 'hello',
    repo: 'https://git.example/hello',
    commit: 'a'.repeat(40),
    path: '.',
    build: { strategy: 'auto', dockerfile: 'Dockerfile', args: [], env: [] },
    image: 'registry.example/apps/hello',
    push: `${mirror}/apps/hello`,
    mirror,
    plainHosts: [mirror],
    limits: { repositoryBytes: 1, files: 1, fileBytes: 1 },
    imagesOnDemand: ['golang:1.26', 'rust:1', 'mcr.microsoft.com/dotnet/sdk:10.0'],
  });
  try {
    const text = 'FROM golang:1.26\nFROM rust:1\nFROM mcr.microsoft.com/dotnet/sdk:10.0\nFROM debian:12';
    const found = await findUnpreparedImages(input, text, 'secret');
    assert.deepEqual(found, ['golang:1.26', 'mcr.microsoft.com/dotnet/sdk:10.0']);
    assert.deepEqual(asked.toSorted(), [
      'HEAD /v2/dotnet/sdk/manifests/10.0 token',
      'HEAD /v2/library/golang/manifests/1.26 token',
      'HEAD /v2/library/rust/manifests/1 token',
    ]);
  } finally {
    server.close();
  }
  // A mirror that does not respond is for the build to report.
  assert.deepEqual(await findUnpreparedImages(input, 'FROM golang:1.26', undefined), []);
});
