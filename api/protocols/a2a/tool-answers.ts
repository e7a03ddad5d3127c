// Results of tools and reports on jobs, as the agent answers with them.
import { envelopeOf, isEmbeddable, type JobReport, type ToolResult } from '../../tools/index.ts';
import type { AgentAnswer, AgentTask } from './calls.ts';

/** The envelope of /t, and the file beside it. */
export function answerOf(result: ToolResult, fileWanted: boolean): AgentAnswer {
  const answer = envelopeOf(result, false);
  const artifact = result.run?.artifact;
  if (artifact === undefined) return { answer };
  const inside = fileWanted || isEmbeddable(artifact, result.meta);
  return {
    answer,
    file: {
      name: artifact.fileName,
      mediaType: artifact.mediaType,
      url: result.meta.fileUrl,
      bytes: inside ? artifact.bytes : undefined,
    },
  };
}

/** A job that no agent began is a conversation of its own. */
export function agentTask(tool: string, { job, result, problem }: JobReport): AgentTask {
  const { id, context = id, input, state, progress, message, createdAt, endedAt } = job;
  return {
    id,
    tool,
    contextId: context,
    input,
    state,
    progress,
    message,
    at: endedAt ?? createdAt,
    answer: result === undefined || state !== 'done' ? undefined : answerOf(result, false),
    problem,
  };
}
