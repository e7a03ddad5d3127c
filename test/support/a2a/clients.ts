// Clients of A2A 1.0 and 0.3, by the protocol's makers, and the messages that they send.
import assert from 'node:assert/strict';
import { Role, type AgentCard, type Message, type Part, type SendMessageConfiguration } from '@a2a-js/sdk';
import { type StreamResponse, type Task, TaskState, type SendMessageRequest } from '@a2a-js/sdk';
import { type Client, ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';

export const versions = ['1.0', '0.3'] as const;
export type Version = (typeof versions)[number];

/** A client that speaks this version; the card offers both. `fetchImpl` stands for who calls. */
export async function createClient(
  baseUrl: string,
  version: Version,
  fetchImpl: typeof fetch = fetch,
): Promise<Client> {
  const card = await new DefaultAgentCardResolver().resolve(baseUrl);
  const spoken: AgentCard = {
    ...card,
    supportedInterfaces: card.supportedInterfaces.filter(({ protocolVersion }) => protocolVersion === version),
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat: { enabled: true } })],
  });
  return factory.createFromAgentCard(spoken);
}

export const dataPart = (value: unknown): Part => ({
  content: { $case: 'data', value },
  metadata: undefined,
  filename: '',
  mediaType: '',
});

export function request(
  call: object,
  configuration: Partial<SendMessageConfiguration> = {},
  message: Partial<Message> = {},
): SendMessageRequest {
  return {
    tenant: '',
    metadata: undefined,
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: false,
      ...configuration,
    },
    message: {
      messageId: crypto.randomUUID(),
      contextId: '',
      taskId: '',
      role: Role.ROLE_USER,
      parts: [dataPart(call)],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
      ...message,
    },
  };
}

export function assertTask(answer: Message | Task): Task {
  assert.ok('status' in answer, JSON.stringify(answer));
  return answer;
}

export const formatState = ({ status }: Pick<Task, 'status'>): string => TaskState[status?.state ?? -1] ?? 'none';

/** What an event of a stream says, in a line. */
export function formatEvent({ payload }: StreamResponse): string {
  switch (payload?.$case) {
    case 'task':
      return `task ${formatState(payload.value)}`;
    case 'statusUpdate':
      return `status ${formatState(payload.value)}${formatWords(payload.value)}`;
    case 'artifactUpdate':
      return `artifact ${payload.value.artifact?.parts.map(({ content }) => content?.$case).join('+') ?? ''}`;
    default:
      return payload?.$case ?? 'nothing';
  }
}

function formatWords({ status }: Pick<Task, 'status'>): string {
  const said = status?.message?.parts[0]?.content;
  return said?.$case === 'text' ? `: ${said.value}` : '';
}

export async function collect(stream: AsyncIterable<StreamResponse>): Promise<StreamResponse[]> {
  const events: StreamResponse[] = [];
  for await (const event of stream) events.push(event);
  return events;
}
