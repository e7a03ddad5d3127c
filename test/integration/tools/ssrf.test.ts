// Every field of every tool that takes an address is attacked with the whole corpus of inner addresses, in a test that
// finds the fields by itself.
import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { z } from 'zod';
import { backingServices, type ServiceUrls } from '../../../api/tools/services/backing-services.ts';
import { GuardedFetcher } from '../../../api/tools/fetch/guarded-fetcher.ts';
import { builtinTools } from '../../../api/tools/builtin/all.ts';
import type { Tool } from '../../../api/tools/tool.ts';
import { Problem } from '../../../lib/problem.ts';
import { runTool } from '../../support/tools/context.ts';
import { innerNames, innerUrls } from '../../support/tools/fetch/inner-urls.ts';
import { countConnections, type Listener } from '../../support/tools/fetch/listener.ts';
import { startWeb, type Web } from '../../support/tools/fetch/web.ts';
import { urlServices } from '../../support/tools/url-services.ts';

const schemaOf = z.looseObject({
  properties: z.record(
    z.string(),
    z.looseObject({ format: z.string().optional(), description: z.string().optional() }),
  ),
  required: z.array(z.string()).default([]),
});

interface Field {
  readonly tool: Tool;
  readonly name: string;
}

function inputOf(tool: Tool): z.output<typeof schemaOf> {
  return schemaOf.parse(z.toJSONSchema(tool.input, { io: 'input', unrepresentable: 'any' }));
}

/** Fields that are made by `urlField`, and any that is called like one. */
function urlFields(tools: readonly Tool[]): Field[] {
  return tools.flatMap((tool) =>
    Object.entries(inputOf(tool).properties)
      .filter(([name, { format }]) => format === 'uri' || /(?:^|_)ur[li]s?$/.test(name))
      .map(([name]) => ({ tool, name })),
  );
}

/** The least that the tool takes beside the field. */
function callWith({ tool, name }: Field, url: string): Record<string, unknown> {
  const example: Readonly<Record<string, unknown>> = tool.example;
  const others = inputOf(tool)
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
    const services = urlServices([], urls, fetcher);
    tools = builtinTools(services);
    fields = urlFields(tools);
    close = async () => services.workers.close();
  });
  afterAll(async () => {
    await close();
    await listener.close();
    await web.close();
    await service.close();
  });

  it('are in the tools that are known to take one', () => {
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

  it('are known by their format wherever a description speaks of an address to fetch', () => {
    const untold = tools.flatMap((tool) =>
      Object.entries(inputOf(tool).properties)
        .filter(([, { description = '', format }]) => /https?:\/\/|public http/.test(description) && format !== 'uri')
        .map(([name]) => `${tool.name}.${name}`),
    );
    assert.deepEqual(untold, []);
  });

  it('reach nothing inside, directly or by a redirect', async () => {
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
        [...new Set(reasons)].filter((reason) => reason !== 'invalid'),
        ['url-refused'],
        `${field.tool.name}.${field.name}`,
      );
      // Not all by the form of the input, which would say nothing of the guard.
      assert.ok(reasons.filter((reason) => reason === 'url-refused').length >= 200, `${field.tool.name}.${field.name}`);
    }
    assert.equal(listener.connections(), 0);
    assert.deepEqual(service.asked, [], 'no backing service was asked');
  });
});

function reasonOf(error: unknown): string {
  if (error instanceof z.ZodError) return 'invalid';
  return error instanceof Problem ? error.type.slug : String(error);
}
