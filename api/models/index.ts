// What the rest of the API uses of this room: the list of models, the metered router, ask, compare and /v1.
export { limitsOf, type PayerFor, payersOf } from './callers/payers.ts';
export { type Catalog, type Model, readCatalog } from './catalog.ts';
export { chooseModels, compareModels, comparisonResult, maxModels } from './compare/comparison.ts';
export { type AnswerOptions, conversationOf } from './conversation/conversation.ts';
export { temperatureField, topPField } from './conversation/fields.ts';
export { spreadSize } from './compare/spread.ts';
export { type ModelSettings, readModelSettings, type RouterSettings } from './config.ts';
export { answerOrThrow } from './metered/call-problem.ts';
export type { Settlement } from './metered/metered-router.ts';
export { ask, maxCost, type Question } from './metered/question.ts';
export {
  keyOutOfCredit,
  keyChecksLimited,
  keyRefused,
  keyRequired,
  modelFailed,
  modelProblems,
  modelRefused,
  modelsUnconfigured,
  modelTimeout,
  routerUnavailable,
} from './problems.ts';
export { allowModels, modelField, promptField, systemField } from './request.ts';
export { RouterClient } from './router/client.ts';
export { type DemoRouter, startDemoRouter } from './router/demo-router.ts';
export type { ModelServices } from './services.ts';
export { type Models, type ModelsOptions, startModels } from './start.ts';
export { modelAppOf } from './v1/apps.ts';
export { openAiError } from './v1/errors.ts';
