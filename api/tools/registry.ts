// The tools, in the order in which they are listed.
import { askModelTool } from './ask-model.ts';
import { compareModelsTool } from './compare-models.ts';
import type { ToolServices } from './services.ts';
import type { Tool } from './tool.ts';
import { translateTextTool } from './translate-text.ts';

const makers: readonly ((services: ToolServices) => Tool)[] = [
  translateTextTool,
  askModelTool,
  compareModelsTool,
];

export function toolRegistry(services: ToolServices): Tool[] {
  return makers.map((make) => make(services));
}
