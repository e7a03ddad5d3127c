// An agent with OpenAI's own SDK: nothing but its base URL is changed.
import assert from 'node:assert/strict';
import OpenAI from 'openai';
import sharp from 'sharp';
import { demoNotice } from '../../../api/models/router/demo-router.ts';
import type { Job, Site } from './place.ts';

const question = [{ role: 'user' as const, content: 'Why do ships float?' }];
const model = 'beta-K3';

export function openAiJobs({ baseUrl, fetch }: Site): Job[] {
  const client = new OpenAI({ baseURL: `${baseUrl}/v1`, apiKey: 'anonymous', fetch, maxRetries: 0 });
  const chat = client.chat.completions;
  const textOf = ({ choices }: OpenAI.ChatCompletion): string => {
    const text = choices[0]?.message.content ?? '';
    assert.ok(text.startsWith(demoNotice), text);
    return text;
  };
  return [
    {
      name: 'the models, listed',
      run: async () => {
        const ids = (await client.models.list()).data.map(({ id }) => id);
        assert.ok(ids.includes(model));
        return `${ids.length} models`;
      },
    },
    {
      name: 'one model by its name',
      run: async () => (await client.models.retrieve(model)).id,
    },
    {
      name: 'an answer, and what it cost',
      run: async () => {
        const { data, response } = await chat
          .create({ model, messages: question, max_completion_tokens: 60 })
          .withResponse();
        textOf(data);
        const cost = Number(response.headers.get('x-cost-usd'));
        assert.ok(cost > 0);
        return `${cost} USD`;
      },
    },
    {
      name: 'an answer that comes in pieces, with usage at the end',
      run: async () => {
        const stream = await chat.create({
          model,
          messages: question,
          max_completion_tokens: 60,
          stream: true,
          stream_options: { include_usage: true },
        });
        let pieces = 0;
        let usage: OpenAI.CompletionUsage | null | undefined;
        for await (const chunk of stream) {
          if ((chunk.choices[0]?.delta.content ?? '') !== '') pieces += 1;
          usage = chunk.usage ?? usage;
        }
        assert.ok(pieces > 1 && (usage?.completion_tokens ?? 0) > 0);
        return `${pieces} pieces`;
      },
    },
    {
      name: 'the helper that gathers a stream',
      run: async () =>
        textOf(await chat.stream({ model, messages: question, max_completion_tokens: 60 }).finalChatCompletion()),
    },
    {
      name: 'a system prompt, a temperature and words at which to stop',
      run: async () =>
        textOf(
          await chat.create({
            model,
            messages: [{ role: 'system', content: 'Answer in one word.' }, ...question],
            temperature: 0.2,
            top_p: 0.9,
            stop: ['\n\n'],
            max_completion_tokens: 60,
          }),
        ),
    },
    {
      name: 'a schema for the answer',
      run: async () =>
        textOf(
          await chat.create({
            model,
            messages: question,
            max_completion_tokens: 60,
            response_format: {
              type: 'json_schema',
              json_schema: { name: 'reason', schema: { type: 'object', properties: { why: { type: 'string' } } } },
            },
          }),
        ),
    },
    {
      name: 'a question about a picture',
      run: async () => {
        const picture = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#036' } })
          .png()
          .toBuffer();
        const url = `data:image/png;base64,${picture.toString('base64')}`;
        const content = [
          { type: 'text' as const, text: 'What colour is it?' },
          { type: 'image_url' as const, image_url: { url } },
        ];
        // What a picture may cost is reserved, and a tenth of it with this model.
        const messages = [{ role: 'user' as const, content }];
        return textOf(await chat.create({ model: 'alpha-v4-flash', messages, max_completion_tokens: 60 }));
      },
    },
    {
      name: 'functions on offer',
      run: async () =>
        textOf(
          await chat.create({
            model,
            messages: question,
            max_completion_tokens: 60,
            tools: [{ type: 'function', function: { name: 'tide', parameters: { type: 'object', properties: {} } } }],
          }),
        ),
    },
    {
      name: 'a text as a vector',
      run: async () => {
        const ids = (await client.models.list()).data.map(({ id }) => id);
        const id = ids.find((one) => one.includes('embed')) ?? assert.fail(ids.join(', '));
        const { data } = await client.embeddings.create({ model: id, input: 'ship' });
        assert.ok((data[0]?.embedding.length ?? 0) > 0);
        return `${data[0]?.embedding.length ?? 0} numbers`;
      },
    },
    {
      name: 'ten answers at once',
      run: async () => {
        const answers = await Promise.all(
          Array.from({ length: 10 }, () => chat.create({ model, messages: question, max_completion_tokens: 20 })),
        );
        for (const answer of answers) textOf(answer);
        return `${answers.length} answers`;
      },
    },
    {
      name: 'a model that does not exist: the error names where models are listed',
      run: async () => {
        const error = await chat.create({ model: 'gpt-4', messages: question }).then(
          () => assert.fail('answered'),
          (thrown: unknown) => thrown,
        );
        assert.ok(error instanceof OpenAI.APIError && error.status === 404, String(error));
        assert.match(error.message, /GET \/v1\/models/);
        return error.message.slice(0, 120);
      },
    },
  ];
}
