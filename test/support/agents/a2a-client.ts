// An agent that talks to ours by A2A, with the client of the protocol's makers: calls as data, as JSON in words, streamed.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Role, TaskState, type Message, type Part, type StreamResponse, type Task } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import type { ConnectedClient } from './mcp-client.ts';
import type { Site } from './place.ts';
import { envelope } from './results.ts';

export async function connectA2aClient({ baseUrl, fetch }: Site): Promise<ConnectedClient> {
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl: fetch })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl: fetch }),
  });
  const client = await factory.createFromUrl(baseUrl);
  const { skills } = await client.getAgentCard();
  let calls = 0;
  return {
    tools: skills.map(({ id }) => id).filter((id) => !id.startsWith('app:')),
    async call(name, fields) {
      calls += 1;
      const request = { tool: name, arguments: fields };
      // Each form that agents are seen to write.
      const part =
        calls % 2 === 0
          ? dataPart(request)
          : textPart(`Please run this:\n\`\`\`json\n${JSON.stringify(request)}\n\`\`\``);
      const params = { message: createMessage(part), configuration: undefined, metadata: undefined, tenant: '' };
      if (calls % 3 !== 0) return readResult(await client.sendMessage(params));
      let last: Message | Task | undefined;
      for await (const event of client.sendMessageStream(params)) last = findEnd(event, last);
      return readResult(last ?? assert.fail('the stream was empty'));
    },
    close: () => Promise.resolve(),
  };
}

/** The message or task as it stands after this event. */
function findEnd({ payload }: StreamResponse, before: Message | Task | undefined): Message | Task | undefined {
  if (payload?.$case === 'message' || payload?.$case === 'task') return payload.value;
  return before !== undefined && 'status' in before ? updated(before, payload) : before;
}

function updated(task: Task, payload: StreamResponse['payload']): Task {
  if (payload?.$case === 'statusUpdate') return { ...task, status: payload.value.status };
  if (payload?.$case === 'artifactUpdate' && payload.value.artifact !== undefined)
    return { ...task, artifacts: [...task.artifacts, payload.value.artifact] };
  return task;
}

function readResult(answer: Message | Task): ReturnType<typeof envelope.parse> {
  if ('parts' in answer) return envelope.parse(readData(answer.parts));
  if (answer.status?.state === TaskState.TASK_STATE_COMPLETED)
    return envelope.parse(readData(answer.artifacts.flatMap(({ parts }) => parts)));
  throw new Error(JSON.stringify(answer.status?.message?.parts.map(({ content }): unknown => content?.value)));
}

const readData = (parts: readonly Part[]): unknown =>
  parts.find(({ content }) => content?.$case === 'data')?.content?.value ?? assert.fail('no data part');

function createMessage(part: Part): Message {
  return {
    messageId: randomUUID(),
    contextId: '',
    taskId: '',
    role: Role.ROLE_USER,
    parts: [part],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

const about = { mediaType: '', filename: '', metadata: undefined };
const dataPart = (value: unknown): Part => ({ content: { $case: 'data', value }, ...about });
const textPart = (value: string): Part => ({ content: { $case: 'text', value }, ...about });
