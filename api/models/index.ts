// What the rest of the API uses of this room: the list of models, the metered router, ask, compare and /v1.
export { allowModels, type Catalog, type Model, modelField, readCatalog } from './catalog.ts';
export { chooseModels, compareModels, comparisonResult, maxModels, spreadSize } from './compare/comparison.ts';
export { type ModelSettings, readModelSettings, type RouterSettings } from './config.ts';
export {
  type AnswerOptions,
  conversationOf,
  promptField,
  systemField,
  temperatureField,
  topPField,
} from './conversation.ts';
export { ask, maxCost, type Question, type Settlement } from './metered-router.ts';
export type { ModelServices } from './model-endpoint.ts';
export { limitsOf, modelAppOf, type PayerFor, payersOf } from './payers.ts';
export {
  answerOrThrow,
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
export { openAiError } from './v1/answers.ts';
