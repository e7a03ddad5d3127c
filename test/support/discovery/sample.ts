// A tool and live apps as the tests of discovery need them.
import { z } from 'zod';
import { defineTool, type Tool } from '../../../api/tools/tool.ts';
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';

/** Repeats what is sent to it. */
export const echoTool: Tool = defineTool({
  name: 'echo',
  title: 'Echo',
  description: 'Repeats a text.\nSo often as is said.',
  input: z.strictObject({
    text: z.string().max(200).describe('What to repeat'),
    times: z.int().min(1).max(9).default(1).describe('How often'),
  }),
  aliases: { message: 'text' },
  output: z.object({ said: z.array(z.string()).describe('What was said') }),
  example: { text: 'ahoy & welcome', times: 2 },
  price: '0',
  openWorld: false,
  run: ({ text, times }) => Promise.resolve({ result: { said: new Array<string>(times).fill(text) } }),
});

/** A tool whose service is not there. */
export const silentTool: Tool = defineTool({
  name: 'listen',
  title: 'Listen',
  description: 'Hears what is said.',
  input: z.strictObject({ url: z.url().describe('Where it is said') }),
  output: z.object({ heard: z.string().describe('What was heard') }),
  example: { url: 'https://example.org/speech.mp3' },
  price: '0.002',
  openWorld: true,
  needs: 'speech',
  artifacts: ['text/plain'],
  long: true,
  run: () => Promise.reject(new Error('called although it is off')),
});

/** The status of an app that answers. */
export function createLiveStatus(url: string): HostedAppStatus {
  return {
    phase: 'Live',
    url,
    served: { image: 'registry.test/app@sha256:0', commit: 'a'.repeat(40), since: '2026-01-01T00:00:00Z' },
  };
}
