// Parts of messages and artifacts, and the messages that are made of them.
import { randomUUID } from 'node:crypto';
import { Role, type Message, type Part } from '@a2a-js/sdk';
import type { AgentAnswer, AgentTask } from './calls.ts';

export const textPart = (text: string): Part => part({ $case: 'text', value: text }, 'text/plain', '');
export const dataPart = (value: unknown): Part => part({ $case: 'data', value }, 'application/json', '');

/** The result of a call, and its file, if any: inside, or as a link. */
export function partsOf({ answer, file }: AgentAnswer): Part[] {
  const parts = [dataPart(answer)];
  if (file?.bytes !== undefined)
    parts.push(part({ $case: 'raw', value: Buffer.from(file.bytes) }, file.mediaType, file.name));
  else if (file?.url !== undefined) parts.push(part({ $case: 'url', value: file.url }, file.mediaType, file.name));
  return parts;
}

/** A message of the agent. */
export function agentMessage(
  { contextId, taskId }: { readonly contextId: string; readonly taskId: string },
  parts: Part[],
): Message {
  return {
    messageId: randomUUID(),
    contextId,
    taskId,
    role: Role.ROLE_AGENT,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

/** The call that a job does, as the message of the user that it came from. */
export function callMessage({ id, contextId, tool, input }: AgentTask): Message {
  const message = agentMessage({ contextId, taskId: id }, [dataPart({ tool, arguments: input })]);
  return { ...message, messageId: id, role: Role.ROLE_USER };
}

function part(content: NonNullable<Part['content']>, mediaType: string, filename: string): Part {
  return { content, mediaType, filename, metadata: undefined };
}
