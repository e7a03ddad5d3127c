// The public face of tools: what the API's other rooms import.
export { readToolSettings, type ToolSettings } from './config.ts';
export { describe } from './endpoints.ts';
export { exampleUrl } from './example-url.ts';
export { listTool, listedTool, type ListedTool } from './listed-tool.ts';
export {
  noArtifact,
  toolBusy,
  toolFailed,
  toolLimit,
  toolProblems,
  tooManyCalls,
  unknownTool,
  unprocessable,
} from './problems.ts';
export { startTools, type Tools, type ToolsOptions } from './start.ts';
export { defineTool, type Artifact, type Progress, type Tool, type ToolContext, type ToolDefinition } from './tool.ts';
export { artifactUrl } from './engine/artifacts/endpoint.ts';
export type { ArtifactStore } from './engine/artifacts/artifact-store.ts';
export { costFields, reportedCost, type Cost } from './engine/cost.ts';
export { envelopeOf, envelopeSchema, isEmbeddable } from './engine/envelope.ts';
export { noExternalTools, type ExternalToolCall, type ExternalTools } from './engine/external-tools.ts';
export { ToolReader, type Reading } from './engine/reading.ts';
export { Slots, type SlotsOptions } from './engine/slots.ts';
export type { ToolCall, ToolResult } from './engine/tool-call.ts';
export type { HostedAppSummary, ToolDependencies } from './engine/tool-dependencies.ts';
export { nearestNames, type ToolRegistry } from './engine/tool-registry.ts';
export type { ToolService } from './engine/tool-service.ts';
export { createWorkers } from './engine/workers/pool.ts';
export type { Workers } from './engine/workers/workers.ts';
export { BadEncoding, readBody, TooLarge } from './fetch/body.ts';
export { readFetchConfig } from './fetch/config.ts';
export type { Fetcher } from './fetch/fetcher.ts';
export { GuardedFetcher } from './fetch/guarded-fetcher.ts';
export { serviceOff } from './services/backing-services.ts';
