// What the rest of the API uses of this room: the list of models, who pays, the metered router, ask, compare and /v1.
export { type Catalog, type Model, modelField, readCatalog } from './catalog.ts';
export { chooseModels, compareModels, comparisonResult, maxModels, spreadSize } from './comparison.ts';
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
export { comparisonAnswer, type ModelServices } from './endpoints.ts';
export { getAnswerOrThrow, type ModelCall, type Settlement } from './metered-router.ts';
export { allowModels, type PayerFor, readLimits, toModelApp } from './payers.ts';
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
  payerProblems,
  routerUnavailable,
} from './problems.ts';
export { RouterClient } from './router/client.ts';
export { type DemoRouter, startDemoRouter } from './router/demo-router.ts';
export { type Models, type ModelsOptions, startModels } from './start.ts';
export { toOpenAiError } from './v1/answers.ts';
