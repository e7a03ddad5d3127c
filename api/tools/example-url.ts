// The example call of a tool as a URL.
import type { Tool } from './tool.ts';

export function exampleUrl(tool: Tool, baseUrl: string): string {
  const query = new URLSearchParams();
  for (const [field, value] of Object.entries(tool.example)) {
    for (const one of Array.isArray(value) ? value : [value])
      query.append(field, typeof one === 'object' ? JSON.stringify(one) : String(one));
  }
  const text = query.toString();
  return `${baseUrl}/t/${tool.name}${text === '' ? '' : `?${text}`}`;
}
