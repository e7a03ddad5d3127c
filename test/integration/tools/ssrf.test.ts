// Every field of every tool that takes an address or a file is attacked with the whole corpus of inner addresses, in a
// test that finds the fields by itself.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { backingServices, type ServiceUrls } from '../../../api/tools/services/backing-services.ts';
import type { Fetcher } from '../../../api/tools/fetch/fetcher.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/fetcher.ts';
import { urlPattern } from '../../../api/tools/inputs/fields.ts';
import { checkPushUrl, sendPush } from '../../../api/protocols/a2a/push-notifications.ts';
import { createBuiltinTools } from '../../../api/tools/builtin/all.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { runTool } from '../../support/tools/context.ts';
import { attackPage } from '../../support/tools/gotenberg-attacks.ts';
import { docx, docxPicture, createOutsideLink } from '../../support/tools/office-files.ts';
import { innerNames, innerUrls } from '../../support/tools/fetch/inner-urls.ts';
import { countConnections, type Listener } from '../../support/tools/fetch/listener.ts';
import { startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { urlServices } from '../../support/tools/url-services.ts';

const schemaOf = z.looseObject({
  properties: z.record(
    z.string(),
    z.looseObject({ pattern: z.string().optional(), description: z.string().optional() }),
  ),
  required: z.array(z.string()).default([]),
});

interface Field {
  readonly tool: Tool;
  readonly name: string;
}

function buildInput(tool: Tool): z.output<typeof schemaOf> {
  return schemaOf.parse(z.toJSONSchema(tool.input, { io: 'input', unrepresentable: 'any' }));
}

/** Fields that are made by `urlField`, and any that is called like one. */
function urlFields(tools: readonly Tool[]): Field[] {
  return tools.flatMap((tool) =>
    Object.entries(buildInput(tool).properties)
      .filter(([name, { pattern }]) => pattern === urlPattern.source || /(?:^|_)ur[li]s?$/.test(name))
      .map(([name]) => ({ tool, name })),
  );
}

/** Fields of a file that is not fetched, as `fileFields` makes them: always both. */
function fileFields(tools: readonly Tool[], named: 'data' | 'artifact'): Field[] {
  return tools.filter((tool) => 'artifact' in buildInput(tool).properties).map((tool) => ({ tool, name: named }));
}

const base64 = (bytes: Uint8Array | string): string => Buffer.from(bytes).toString('base64');

/** Files that point inside by every means of their format, all addresses in each. */
async function attackingFiles(urls: readonly string[]): Promise<string[]> {
  const quoted = urls.map((url) => url.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;'));
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9" height="9">${quoted
    .map((url) => `<image href="${url}" xlink:href="${url}" width="9" height="9"/><use href="${url}#a"/>`)
    .join('')}</svg>`;
  const entities = `<!DOCTYPE svg [${quoted.map((url, index) => `<!ENTITY e${index} SYSTEM "${url}">`).join('')}]><svg xmlns="http://www.w3.org/2000/svg">&e0;</svg>`;
  const pages = urls
    .filter((url) => URL.canParse(url) && /^https?:/i.test(url))
    .slice(0, 3)
    .map(attackPage);
  const linked = quoted.map(
    (url) => `<img src="${url}"><iframe src="${url}"></iframe><link rel=stylesheet href="${url}">`,
  );
  const words = await docx('text', {
    body: urls.map((_, index) => docxPicture(`r${index}`)).join(''),
    links: quoted.map((url, index) => createOutsideLink(`r${index}`, 'image', url)).join(''),
  });
  const pdf = `%PDF-1.7\n${urls.map((url, index) => `${index + 1} 0 obj<</Type/Action/S/URI/URI(${url.replaceAll(/[()\\]/g, '')})>>endobj`).join('\n')}`;
  const html = `<!doctype html><meta http-equiv=refresh content="0;url=${quoted[0] ?? ''}">${linked.join('')}`;
  const playlist = `#EXTM3U\n${urls.join('\n')}`;
  return [
    ...[svg, entities, html, pdf, playlist, ...pages].map(base64),
    base64(words),
    `data:image/svg+xml;base64,${base64(svg)}`,
    `data:text/html,${encodeURIComponent(html)}`,
    `data:text/markdown,${encodeURIComponent(urls.map((url) => `![x](<${url}>)`).join('\n'))}`,
    `data:audio/mpegurl;base64,${base64(playlist)}`,
  ];
}

/** The least that the tool takes beside the field. */
function callWith({ tool, name }: Field, url: string): Record<string, unknown> {
  const example: Readonly<Record<string, unknown>> = tool.example;
  const others = buildInput(tool)
    .required.filter((required) => required !== name)
    .map((required) => [required, example[required]] as const);
  return { ...Object.fromEntries<unknown>(others), [name]: url };
}

describe('addresses in the input of tools', () => {
  let listener: Listener;
  let web: Web;
  let service: Web;
  let tools: Tool[];
  let fields: Field[];
  let guarded: Fetcher;
  const fetched: string[] = [];
  let close = async (): Promise<void> => Promise.resolve();

  beforeAll(async () => {
    listener = await countConnections();
    web = await startWeb({
      '/to': (request, response) => {
        response
          .writeHead(302, {
            location: Buffer.from(decodeURIComponent((request.url ?? '').replace('/to?', ''))).toString('latin1'),
          })
          .end();
      },
    });
    // Stands for every backing service: none of them may be handed what is refused.
    service = await startWeb({});
    const urls: ServiceUrls = Object.fromEntries(Object.keys(backingServices).map((name) => [name, service.url]));
    const resolve = async (name: string): Promise<string[]> => Promise.resolve([...(innerNames[name] ?? [])]);
    const fetcher = new GuardedFetcher({ ports: [80, 443, listener.port], allow: [web.host], resolve });
    const counted: Fetcher = {
      fetch: async (request) => {
        fetched.push(request.url);
        return fetcher.fetch(request);
      },
      get: async (request) => {
        fetched.push(request.url);
        return fetcher.get(request);
      },
      check: async (request) => fetcher.check(request),
    };
    guarded = fetcher;
    const services = urlServices([], urls, counted);
    tools = createBuiltinTools(services);
    fields = urlFields(tools);
    close = async () => services.workers.close();
  });
  afterAll(async () => {
    await close();
    await listener.close();
    await web.close();
    await service.close();
  });

  it('are in exactly the tools known to accept one', () => {
    const found = fields.map(({ tool, name }) => `${tool.name}.${name}`);
    const known = [
      'fetch_page.url',
      'ocr_image.url',
      'extract_pdf.url',
      'convert_image.url',
      'screenshot.url',
      'transcribe_audio.url',
      'convert_to_pdf.url',
      'translate_pdf.url',
    ];
    assert.deepEqual(found.toSorted(), known.toSorted());
  });

  it('are accepted next to data and an artifact in every tool that reads a file', () => {
    const readers = [
      'ocr_image',
      'extract_pdf',
      'convert_image',
      'transcribe_audio',
      'convert_to_pdf',
      'translate_pdf',
    ];
    const found = fileFields(tools, 'data').filter(({ tool }) =>
      ['url', 'data'].every((name) => name in buildInput(tool).properties),
    );
    assert.deepEqual(found.map(({ tool }) => tool.name).toSorted(), readers.toSorted());
  });

  it('are recognized by their pattern wherever a description mentions an address to fetch', () => {
    const untold = tools.flatMap((tool) =>
      Object.entries(buildInput(tool).properties)
        .filter(
          ([, { description = '', pattern }]) =>
            /https?:\/\/|public http/.test(description) && pattern !== urlPattern.source,
        )
        .map(([name]) => `${tool.name}.${name}`),
    );
    assert.deepEqual(untold, []);
  });

  it('reach nothing internal, directly or by a redirect', async () => {
    const urls = innerUrls(listener.port);
    assert.ok(urls.length >= 60);
    const redirected = urls
      .filter((url) => /^https?:\/\/./i.test(url))
      .map((url) => `${web.url}/to?${encodeURIComponent(url)}`);
    for (const field of fields) {
      const reasons: string[] = [];
      for (const url of [...urls, ...redirected]) {
        await assert.rejects(
          runTool(field.tool, callWith(field, url)),
          (error) => {
            reasons.push(reasonOf(error));
            return true;
          },
          `${field.tool.name}.${field.name} ${JSON.stringify(url)}`,
        );
      }
      assert.deepEqual(
        [...new Set(reasons)].filter((reason) => reason !== 'invalid-request'),
        ['url-refused'],
        `${field.tool.name}.${field.name}`,
      );
      // Not all by the form of the input, which would say nothing of the guard.
      assert.ok(reasons.filter((reason) => reason === 'url-refused').length >= 200, `${field.tool.name}.${field.name}`);
    }
    assert.equal(listener.connections(), 0);
    assert.deepEqual(service.asked, [], 'no backing service was asked');
  });

  it('are not notified of the end of a task: neither when set, nor if they resolve to internal addresses later', async () => {
    const signal = new AbortController().signal;
    const push = { token: 'token', scheme: 'Bearer', credentials: 'secret', version: '1.0' };
    const task = { id: '1', contextId: '1', artifacts: [], history: [], metadata: undefined, status: undefined };
    const redirected = innerUrls(listener.port)
      .filter((url) => /^https?:\/\/./i.test(url))
      .map((url) => `${web.url}/to?${encodeURIComponent(url)}`);
    for (const url of innerUrls(listener.port)) {
      const secure = url.replace(/^http:/i, 'https:');
      for (const each of new Set([url, secure])) {
        await assert.rejects(checkPushUrl(guarded, each, signal), (error) => reasonOf(error) === 'url-refused', each);
        await assert.rejects(
          sendPush(guarded, { ...push, url: each }, task, signal),
          (error) => reasonOf(error) === 'url-refused',
          each,
        );
      }
    }
    // The fetcher of this test may reach the first of two hops.
    for (const url of redirected)
      await assert.rejects(
        sendPush(guarded, { ...push, url }, task, signal),
        (error) => error instanceof Problem && /returned status 302/.test(error.message),
        url,
      );
    assert.equal(listener.connections(), 0);
  });

  it('are neither data nor an artifact', async () => {
    fetched.length = 0;
    for (const field of [...fileFields(tools, 'data'), ...fileFields(tools, 'artifact')])
      for (const url of innerUrls(listener.port).filter((each) => field.name !== 'data' || !/^data:/i.test(each)))
        await assert.rejects(
          runTool(field.tool, callWith(field, url)),
          (error) => ['invalid', 'invalid-request'].includes(reasonOf(error)),
          `${field.tool.name}.${field.name} ${JSON.stringify(url)}`,
        );
    assert.deepEqual(fetched, []);
    assert.equal(listener.connections(), 0);
    assert.deepEqual(service.asked, [], 'no backing service was asked');
  });

  it('are not followed from within data', async () => {
    fetched.length = 0;
    const files = await attackingFiles(innerUrls(listener.port));
    const outcomes = new Set<string>();
    for (const field of fileFields(tools, 'data'))
      for (const data of files)
        await runTool(field.tool, callWith(field, data)).then(
          () => outcomes.add('answered'),
          (error: unknown) => outcomes.add(reasonOf(error)),
        );
    assert.deepEqual(fetched, []);
    assert.equal(listener.connections(), 0);
    // Read, and not refused by the form of the input alone.
    assert.ok(outcomes.has('unprocessable') || outcomes.has('answered'), [...outcomes].join());
    assert.ok(!outcomes.has('invalid-request'), [...outcomes].join());
  });
});

function reasonOf(error: unknown): string {
  return error instanceof Problem ? error.type.slug : String(error);
}
