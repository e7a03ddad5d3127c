// The tools, in the order in which they are listed.
import { askModelTool } from './ask-model.ts';
import { compareModelsTool } from './compare-models.ts';
import { listAppsTool } from './list-apps.ts';
import { memoryTool } from './memory.ts';
import { runCodeTool } from './run-code.ts';
import type { ToolServices } from './services.ts';
import type { Tool } from './tool.ts';
import { translateTextTool } from './translate-text.ts';
import { validateJsonTool } from './validate-json.ts';

const makers: readonly ((services: ToolServices) => Tool)[] = [
  translateTextTool,
  askModelTool,
  compareModelsTool,
  listAppsTool,
  memoryTool,
  runCodeTool,
  validateJsonTool,
];

export function toolRegistry(services: ToolServices): Tool[] {
  return makers.map((make) => make(services));
}
