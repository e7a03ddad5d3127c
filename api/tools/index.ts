// What the rest of the API uses of this room: the 22 tools, and the engine that runs them.
export { runCodeModule } from './builtin/run-code/run-code.ts';
export { readToolSettings, type ToolSettings } from './config.ts';
export { describe } from './endpoints.ts';
export { ArtifactStore } from './engine/artifacts/artifact-store.ts';
export { artifactUrl } from './engine/artifacts/endpoint.ts';
export { askJson } from './engine/ask-json.ts';
export { type Cost, costFields, costOf, problemCost, problemCostHeaders, reportedCost } from './engine/cost.ts';
export { envelopeOf, envelopeSchema, isEmbeddable } from './engine/envelope.ts';
export {
  type ExternalSearch,
  type ExternalToolCall,
  type ExternalTools,
  type FoundTool,
  noExternalTools,
} from './engine/external-tools.ts';
export { ModelSpender } from './engine/model-spender.ts';
export { ToolReader } from './engine/reading.ts';
export { type CountingSpender, limitOf, usualLimitMs } from './engine/runner.ts';
export type { Jobs } from './engine/jobs/jobs.ts';
export { jobCanceled, unknownJob } from './engine/jobs/problems.ts';
export { Slots, type SlotsOptions } from './engine/slots.ts';
export type { JobReport, ToolResult } from './engine/tool-call.ts';
export type { HostedAppSummary } from './engine/tool-dependencies.ts';
export { ToolRegistry } from './engine/tool-registry.ts';
export { jobProblemType, ToolService } from './engine/tool-service.ts';
export { startWorkers } from './engine/workers/start-workers.ts';
export type { Workers } from './engine/workers/workers.ts';
export { exampleUrl } from './example-url.ts';
export { BadEncoding, readBody, TooLarge } from './fetch/body.ts';
export { readFetchConfig } from './fetch/config.ts';
export type { Fetcher } from './fetch/fetcher.ts';
export { GuardedFetcher } from './fetch/guarded-fetcher.ts';
export { fetchFailed, urlRefused } from './fetch/problems.ts';
export { toolBusy, toolFailed, tooManyCalls, unknownTool } from './problems.ts';
export { startTools, type Tools, type ToolsOptions } from './start.ts';
export type { Artifact, Progress, Tool } from './tool.ts';
