// The tools, in the order in which they are listed.
import type { ToolServices } from './services.ts';
import type { Tool } from './tool.ts';

const makers: readonly ((services: ToolServices) => Tool)[] = [
];

export function toolRegistry(services: ToolServices): Tool[] {
  return makers.map((make) => make(services));
}
