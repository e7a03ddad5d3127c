// A file by URL, as data or from an earlier call: exactly one of them, within one limit, each read from where it is.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { artifactUrl } from '../../../../../api/tools/engine/artifacts/endpoint.ts';
import { artifactId } from '../../../../../api/tools/engine/artifacts/artifact-store.ts';
import { GuardedFetcher } from '../../../../../api/tools/fetch/guarded-fetcher.ts';
import type { GivenFile } from '../../../../../api/tools/inputs/file-fields.ts';
import { type FileSources, type InputFile, readFile } from '../../../../../api/tools/inputs/file-reader.ts';
import type { Artifact } from '../../../../../api/tools/tool.ts';
import { Problem } from '../../../../../lib/problem.ts';
import { page, startWeb, type Web } from '../../../../support/tools/fetch/web.ts';

const baseUrl = 'https://moorage.localhost:8443';
const id = artifactId();
const stored: Artifact = { bytes: Buffer.from('deck'), mediaType: 'application/x-deck', fileName: 'slides.pptx' };

describe('readFile', () => {
  let web: Web;
  let sources: FileSources;
  const asked: string[] = [];
  const read = async (given: GivenFile, maxBytes = 100): Promise<InputFile> =>
    readFile(sources, given, { maxBytes, signal: new AbortController().signal });
  const refuses = async (
    given: GivenFile,
    { slug, field, words, fix }: { slug: string; field: string; words: RegExp; fix: RegExp },
  ): Promise<void> =>
    assert.rejects(read(given), (error) => {
      assert.ok(error instanceof Problem, String(error));
      const [first] = error.errors;
      assert.deepEqual([error.type.slug, first?.field], [slug, field], error.message);
      assert.match(`${error.message} ${first?.message ?? ''}`, words);
      assert.match(first?.fix ?? '', fix);
      return true;
    });

  beforeAll(async () => {
    web = await startWeb({ '/a/report.pdf': page('Application/PDF; version=1', 'pdf') });
    sources = {
      baseUrl,
      fetcher: new GuardedFetcher({ allow: [web.host] }),
      artifacts: {
        get: (name) => {
          asked.push(name);
          return Promise.resolve(name === id ? stored : undefined);
        },
      },
    };
  });
  afterAll(() => web.close());

  it('fetches a URL', async () => {
    const { bytes, ...rest } = await read({ url: `${web.url}/a/report.pdf` });
    assert.equal(Buffer.from(bytes).toString(), 'pdf');
    assert.deepEqual(rest, {
      mediaType: 'application/pdf',
      contentType: 'Application/PDF; version=1',
      url: `${web.url}/a/report.pdf`,
      fileName: 'report.pdf',
      local: false,
    });
  });

  it('reads an artifact by its id, its path or its URL, and never over the network', async () => {
    const addresses: GivenFile[] = [
      { artifact: id },
      { artifact: `/t/artifacts/${id}` },
      { artifact: artifactUrl(baseUrl, id) },
      { artifact: `HTTPS://MOORAGE.localhost:8443/t/artifacts/${id}?x=1#y` },
      { url: artifactUrl(baseUrl, id) },
    ];
    for (const given of addresses) {
      const { bytes, ...rest } = await read(given);
      assert.equal(Buffer.from(bytes).toString(), 'deck', JSON.stringify(given));
      assert.deepEqual(rest, {
        mediaType: 'application/x-deck',
        contentType: 'application/x-deck',
        url: artifactUrl(baseUrl, id),
        fileName: 'slides.pptx',
        local: true,
      });
    }
  });

  it('takes nothing else for an artifact', async () => {
    asked.length = 0;
    for (const artifact of [
      'x',
      `${id}x`,
      `https://other.example/t/artifacts/${id}`,
      `https://moorage.localhost/t/artifacts/${id}`,
      `//moorage.localhost:8444/t/artifacts/${id}`,
      `${baseUrl}/t/artifacts/${id}/..`,
      `${baseUrl}/t/artifacts/`,
      `${baseUrl}/api/models`,
      'http://127.0.0.1/',
      'data:,x',
    ])
      await refuses(
        { artifact },
        {
          slug: 'invalid-request',
          field: 'artifact',
          words: /neither the id nor the URL/,
          fix: /\/t\/artifacts\/<id>/,
        },
      );
    assert.deepEqual(asked, []);
    for (const url of [`${baseUrl}/t/artifacts/x`, `https://moorage.localhost/t/artifacts/${id}`, id])
      await refuses({ url }, { slug: 'url-refused', field: 'url', words: /url/, fix: /public/ });
    assert.deepEqual(asked, []);
  });

  it('says that a file is gone', async () => {
    const gone = artifactId();
    const said = { slug: 'unknown-file', words: /expired/, fix: /Call the tool/ };
    await refuses({ artifact: gone }, { ...said, field: 'artifact' });
    await refuses({ url: artifactUrl(baseUrl, gone) }, { ...said, field: 'url' });
  });

  it('limits the bytes of all of them', async () => {
    const signal = new AbortController().signal;
    for (const [given, slug] of [
      [{ url: `${web.url}/a/report.pdf` }, 'fetch-too-large'],
      [{ data: 'AAAA' }, 'tool-limit'],
      [{ artifact: id }, 'tool-limit'],
    ] as const) {
      await readFile(sources, given, { maxBytes: 4, signal });
      await assert.rejects(readFile(sources, given, { maxBytes: 2, signal }), (error) => {
        assert.ok(error instanceof Problem, String(error));
        assert.equal(error.type.slug, slug);
        assert.equal(error.members['limit_bytes'], 2);
        return true;
      });
    }
  });

  it('wants exactly one', async () => {
    const said = { slug: 'invalid-request', fix: /^Send exactly one of url, data and artifact\.$/ };
    await refuses({}, { ...said, field: 'url', words: /is missing, and so are data and artifact/ });
    await refuses({ url: web.url, data: 'AAAA' }, { ...said, field: 'data', words: /cannot be combined with url/ });
    await refuses(
      { data: 'AAAA', artifact: id },
      { ...said, field: 'artifact', words: /cannot be combined with data/ },
    );
  });
});
