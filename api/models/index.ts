// The public face of models: what the other rooms of the API import.
export { limitsOf, payersOf, type PayerFor } from './callers/payers.ts';
export { modelsFile, readCatalog, type Catalog, type Model } from './catalog.ts';
export { chooseModels, compareModels, comparisonResult, maxModels } from './compare/comparison.ts';
export { spreadSize } from './compare/spread.ts';
export { readModelSettings, type ModelSettings, type RouterSettings } from './config.ts';
export { answerOrThrow } from './metered/call-problem.ts';
export type { ModelCallResult, Settlement } from './metered/metered-router.ts';
export { ask, maxCost, type Question } from './metered/question.ts';
export * from './problems.ts';
export { allowModels, modelField, promptField, systemField } from './request.ts';
export { demoNotice, startDemoRouter, type DemoRouter } from './router/demo-router.ts';
export type { ModelServices } from './services.ts';
export { startModels, type Models, type ModelsOptions } from './start.ts';
export { modelAppOf, type ModelApp } from './v1/apps.ts';
