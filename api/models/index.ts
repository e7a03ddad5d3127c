// What the rest of the API uses of this room: the list of models, who pays, the metered router, ask, compare and /v1.
export { allowModels, type Catalog, type Model, modelField, readCatalog } from './catalog.ts';
export { chooseModels, compareModels, comparisonResult, maxModels, spreadSize } from './compare/comparison.ts';
export { comparisonAnswer } from './compare/endpoint.ts';
export { type ModelSettings, readModelSettings, type RouterSettings } from './config.ts';
export {
  type AnswerOptions,
  createModelCall,
  promptField,
  systemField,
  temperatureField,
  toMessages,
  topPField,
} from './conversation.ts';
export type { ModelCall, Settlement } from './metered-router.ts';
export { getAnswerOrThrow, type ModelServices } from './model-endpoint.ts';
export { type PayerFor, readLimits, toModelApp } from './payers.ts';
export {
  keyChecksLimited,
  keyOutOfCredit,
  keyRefused,
  keyRequired,
  modelFailed,
  modelProblems,
  modelRefused,
  modelsUnconfigured,
  modelTimeout,
  routerUnavailable,
} from './problems.ts';
export { RouterClient } from './router/client.ts';
export { type DemoRouter, startDemoRouter } from './router/demo-router.ts';
export { type Models, type ModelsOptions, startModels } from './start.ts';
export { toOpenAiError } from './v1/answers.ts';
