// Creates the built-in tools, in the order in which they are listed.
import { createAskModelTool } from './ask-model/ask-model.ts';
import { createCheckGrammarTool } from './check-grammar/check-grammar.ts';
import { createCompareModelsTool } from './compare-models/compare-models.ts';
import { createConvertImageTool } from './convert-image/convert-image.ts';
import { createConvertToPdfTool } from './convert-to-pdf/convert-to-pdf.ts';
import { createDeepResearchTool } from './deep-research/deep-research.ts';
import { createExtractPdfTool } from './extract-pdf/extract-pdf.ts';
import { createFetchPageTool } from './fetch-page/fetch-page.ts';
import { createListAppsTool } from './list-apps/list-apps.ts';
import { createLookupCitationTool } from './lookup-citation/lookup-citation.ts';
import { createMakeChartTool } from './make-chart/make-chart.ts';
import { createMakeSlidesTool } from './make-slides/make-slides.ts';
import { createMemoryTool } from './memory/memory.ts';
import { createOcrImageTool } from './ocr-image/ocr-image.ts';
import { createRenderDiagramTool } from './render-diagram/render-diagram.ts';
import { createRunCodeTool } from './run-code/run-code.ts';
import { createScreenshotTool } from './screenshot/screenshot.ts';
import type { ToolDependencies } from '../tool.ts';
import type { Tool } from '../tool.ts';
import { createTranscribeAudioTool } from './transcribe-audio/transcribe-audio.ts';
import { createTranslatePdfTool } from './translate-pdf/translate-pdf.ts';
import { createTranslateTextTool } from './translate-text/translate-text.ts';
import { createValidateJsonTool } from './validate-json/validate-json.ts';
import { createWebSearchTool } from './web-search/web-search.ts';

const toolFactories: readonly ((services: ToolDependencies) => Tool)[] = [
  createWebSearchTool,
  createFetchPageTool,
  createRenderDiagramTool,
  createCheckGrammarTool,
  createTranscribeAudioTool,
  createConvertToPdfTool,
  createTranslateTextTool,
  createAskModelTool,
  createCompareModelsTool,
  createListAppsTool,
  createTranslatePdfTool,
  createDeepResearchTool,
  createMakeSlidesTool,
  createMemoryTool,
  createScreenshotTool,
  createOcrImageTool,
  createMakeChartTool,
  createExtractPdfTool,
  createLookupCitationTool,
  createRunCodeTool,
  createConvertImageTool,
  createValidateJsonTool,
];

export function createBuiltinTools(services: ToolDependencies): Tool[] {
  return toolFactories.map((make) => make(services));
}
