// The tools, in the order in which they are listed.
import { askModelTool } from './ask-model.ts';
import { checkGrammarTool } from './check-grammar.ts';
import { compareModelsTool } from './compare-models.ts';
import { convertImageTool } from './convert-image.ts';
import { convertToPdfTool } from './convert-to-pdf.ts';
import { deepResearchTool } from './deep-research.ts';
import { extractPdfTool } from './extract-pdf.ts';
import { fetchPageTool } from './fetch-page.ts';
import { listAppsTool } from './list-apps.ts';
import { lookupCitationTool } from './lookup-citation.ts';
import { makeChartTool } from './make-chart.ts';
import { makeSlidesTool } from './make-slides.ts';
import { memoryTool } from './memory.ts';
import { ocrImageTool } from './ocr-image.ts';
import { renderDiagramTool } from './render-diagram.ts';
import { runCodeTool } from './run-code.ts';
import { screenshotTool } from './screenshot.ts';
import type { ToolServices } from './services.ts';
import type { Tool } from './tool.ts';
import { transcribeAudioTool } from './transcribe-audio.ts';
import { translatePdfTool } from './translate-pdf.ts';
import { translateTextTool } from './translate-text.ts';
import { validateJsonTool } from './validate-json.ts';
import { webSearchTool } from './web-search.ts';

const makers: readonly ((services: ToolServices) => Tool)[] = [
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

export function toolRegistry(services: ToolServices): Tool[] {
  return makers.map((make) => make(services));
}
