// An agent of the AI SDK: the tools by its own MCP client, the models as those of any compatible provider.
import assert from 'node:assert/strict';
import { createMCPClient } from '@ai-sdk/mcp';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embedMany, generateText, isStepCount, streamText } from 'ai';
import { z } from 'zod';
import { demoNotice } from '../../../api/models/router/demo-router.ts';
import type { ConnectedClient } from './mcp-client.ts';
import type { Job, Site } from './place.ts';
import { envelope } from './results.ts';

const answered = z.looseObject({
  isError: z.boolean().optional(),
  structuredContent: z.unknown().optional(),
  content: z.unknown(),
});

export async function connectAiSdk({ baseUrl, fetch }: Site): Promise<ConnectedClient> {
  const client = await createMCPClient({ transport: { type: 'http', url: `${baseUrl}/mcp`, fetch } });
  const tools = await client.tools();
  return {
    tools: Object.keys(tools),
    async call(name, fields) {
      const tool = tools[name] ?? assert.fail(`no tool ${name}`);
      const result = answered.parse(
        await tool.execute({ ...fields }, { toolCallId: 'trial', messages: [], context: {} }),
      );
      if (result.isError === true) throw new Error(JSON.stringify(result.content));
      return envelope.parse(result.structuredContent);
    },
    close: () => client.close(),
  };
}

/** What is done with models: the demo router calls no tools, so that they are only offered. */
export function aiSdkModelJobs({ baseUrl, fetch }: Site): Job[] {
  const provider = createOpenAICompatible({ name: 'moorage', baseURL: `${baseUrl}/v1`, fetch, includeUsage: true });
  return [
    {
      name: 'an answer, with every tool at hand',
      run: async () => {
        const client = await createMCPClient({ transport: { type: 'http', url: `${baseUrl}/mcp`, fetch } });
        try {
          const { text, usage } = await generateText({
            model: provider('alpha-v4-flash'),
            tools: await client.tools(),
            stopWhen: isStepCount(3),
            prompt: 'Draw me a ship.',
            maxOutputTokens: 60,
          });
          assert.ok(text.startsWith(demoNotice), text);
          assert.ok((usage.inputTokens ?? 0) > 0);
          return `${String(usage.inputTokens)} tokens in`;
        } finally {
          await client.close();
        }
      },
    },
    {
      name: 'an answer that comes in pieces',
      run: async () => {
        const stream = streamText({ model: provider('gamma5.2'), prompt: 'Why do ships float?', maxOutputTokens: 60 });
        let pieces = 0;
        for await (const piece of stream.textStream) pieces += piece === '' ? 0 : 1;
        assert.ok(pieces > 1);
        assert.ok(((await stream.usage).outputTokens ?? 0) > 0);
        return `${pieces} pieces`;
      },
    },
    {
      name: 'two texts as vectors',
      run: async () => {
        const models = z
          .object({ data: z.array(z.looseObject({ id: z.string() })) })
          .parse(await (await fetch(`${baseUrl}/v1/models`)).json());
        const id = models.data.find((model) => model.id.includes('embed'))?.id ?? assert.fail(JSON.stringify(models));
        const { embeddings } = await embedMany({ model: provider.embeddingModel(id), values: ['ship', 'harbour'] });
        assert.equal(embeddings.length, 2);
        return `${embeddings[0]?.length ?? 0} numbers each`;
      },
    },
  ];
}
