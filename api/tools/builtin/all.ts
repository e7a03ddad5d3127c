// The built-in tools, in the order in which they are listed.
import { askModelTool } from './ask-model/ask-model.ts';
import { checkGrammarTool } from './check-grammar/check-grammar.ts';
import { compareModelsTool } from './compare-models/compare-models.ts';
import { convertImageTool } from './convert-image/convert-image.ts';
import { convertToPdfTool } from './convert-to-pdf/convert-to-pdf.ts';
import { deepResearchTool } from './deep-research/deep-research.ts';
import { extractPdfTool } from './extract-pdf/extract-pdf.ts';
import { fetchPageTool } from './fetch-page/fetch-page.ts';
import { listAppsTool } from './list-apps/list-apps.ts';
import { lookupCitationTool } from './lookup-citation/lookup-citation.ts';
import { makeChartTool } from './make-chart/make-chart.ts';
import { makeSlidesTool } from './make-slides/make-slides.ts';
import { memoryTool } from './memory/memory.ts';
import { ocrImageTool } from './ocr-image/ocr-image.ts';
import { renderDiagramTool } from './render-diagram/render-diagram.ts';
import { runCodeTool } from './run-code/run-code.ts';
import { screenshotTool } from './screenshot/screenshot.ts';
import type { ToolDependencies } from '../engine/tool-dependencies.ts';
import type { Tool } from '../tool.ts';
import { transcribeAudioTool } from './transcribe-audio/transcribe-audio.ts';
import { translatePdfTool } from './translate-pdf/translate-pdf.ts';
import { translateTextTool } from './translate-text/translate-text.ts';
import { validateJsonTool } from './validate-json/validate-json.ts';
import { webSearchTool } from './web-search/web-search.ts';

const makers: readonly ((services: ToolDependencies) => Tool)[] = [
  webSearchTool,
  fetchPageTool,
  renderDiagramTool,
  checkGrammarTool,
  transcribeAudioTool,
  convertToPdfTool,
  translateTextTool,
  askModelTool,
  compareModelsTool,
  listAppsTool,
  translatePdfTool,
  deepResearchTool,
  makeSlidesTool,
  memoryTool,
  screenshotTool,
  ocrImageTool,
  makeChartTool,
  extractPdfTool,
  lookupCitationTool,
  runCodeTool,
  convertImageTool,
  validateJsonTool,
];

export function builtinTools(services: ToolDependencies): Tool[] {
  return makers.map((make) => make(services));
}
