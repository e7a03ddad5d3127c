// What is done in a tab: going to a page, and asking it for a value.
import { z } from 'zod';
import type { Tab } from './devtools.ts';

const navigated = z.looseObject({ errorText: z.string().optional() });
const evaluated = z.object({
  result: z.looseObject({ value: z.unknown().optional() }),
  exceptionDetails: z.unknown().optional(),
});

/** Opens a page and waits until it has loaded; the tab's Page domain must be enabled. */
export async function navigate(tab: Tab, url: string): Promise<void> {
  const loaded = tab.event('Page.loadEventFired');
  const answer = navigated.parse(await tab.send('Page.navigate', { url }));
  if (answer.errorText !== undefined) throw new Error(`${url}: ${answer.errorText}`);
  await loaded;
}

/** The value of an expression in the page, or of what it promises. */
export async function evaluateIn<Schema extends z.ZodType>(
  tab: Tab,
  expression: string,
  schema: Schema,
): Promise<z.output<Schema>> {
  const answer = await tab.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
  const { result, exceptionDetails } = evaluated.parse(answer);
  if (exceptionDetails !== undefined) throw new Error(`the page threw: ${JSON.stringify(exceptionDetails)}`);
  return schema.parse(result.value);
}
