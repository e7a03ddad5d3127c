// What the rest of the API uses of this room: the 22 tools, and the engine that runs them.
export { runCodeModule } from './builtin/run-code/run-code.ts';
export { readToolSettings, type ToolSettings } from './config.ts';
export { describeTool } from './endpoints.ts';
export { ArtifactStore } from './engine/artifacts.ts';
export { buildArtifactUrl } from './engine/artifacts.ts';
export { askJson } from './engine/spender.ts';
export {
  type Cost,
  costFields,
  sumCost,
  toProblemCostFields,
  formatProblemCostHeaders,
  toCostFields,
} from './engine/response.ts';
export { toEnvelope, createEnvelopeSchema, isEmbeddable } from './engine/response.ts';
export {
  type ExternalProgress,
  type ExternalSearch,
  type ExternalTool,
  type ExternalToolCall,
  type ExternalTools,
  type FoundTool,
  findProblemType,
  type JobReport,
  noExternalTools,
  ToolRegistry,
  type ToolResult,
  ToolService,
} from './engine/tool-service.ts';
export { ModelSpender } from './engine/spender.ts';
export { ToolReader } from './engine/reading.ts';
export { type CountingSpender, getTimeLimitMs, defaultLimitMs } from './engine/runner.ts';
export type { Jobs } from './engine/jobs/jobs.ts';
export { jobCanceled, unknownJob } from './problems.ts';
export { Slots, type SlotsOptions } from './engine/runner.ts';
export type { HostedAppSummary } from './tool.ts';
export { startWorkers } from './start.ts';
export type { Workers } from './engine/workers/workers.ts';
export { buildExampleUrl } from './list.ts';
export { BadEncoding, readBody, TooLarge } from './fetch/fetcher.ts';
export { readFetchConfig } from './fetch/guard.ts';
export type { Fetcher } from './fetch/fetcher.ts';
export { GuardedFetcher } from './fetch/fetcher.ts';
export { fetchFailed, urlRefused } from './problems.ts';
export { toolBusy, toolFailed, tooManyCalls, unknownTool } from './problems.ts';
export { startTools, type Tools, type ToolsOptions } from './start.ts';
export type { Artifact, Progress, Tool } from './tool.ts';
