// Opens a page as a person would, and writes down what it shows and what it asks for at once.
import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { openTab, type Tab } from '../../support/devtools.ts';

export interface Request {
  readonly url: string;
  /** As Chromium calls it: Document, Script, Stylesheet, Image, Font, XHR, Fetch … */
  readonly type: string;
  /** 0 when there was no answer. */
  readonly status: number;
}

export interface Page {
  readonly url: string;
  /** Of the page itself; 0 when there was no answer. */
  readonly status: number;
  readonly text: string;
  /** Elements in the body. */
  readonly elements: number;
  readonly requests: readonly Request[];
  /** Errors that no script caught. */
  readonly exceptions: readonly string[];
}

export interface VisitOptions {
  /** For what the page does after it has loaded; default 5000 ms. What it still waits for then gets as long again, five times at most. */
  readonly settleMs?: number;
  readonly loadMs?: number;
  readonly screenshot?: string;
}

const sent = z.looseObject({
  requestId: z.string(),
  type: z.string().default('Other'),
  request: z.looseObject({ url: z.string() }),
});
const received = z.looseObject({ requestId: z.string(), response: z.looseObject({ status: z.number() }) });
const failed = z.looseObject({ requestId: z.string(), canceled: z.boolean().optional() });
const thrown = z.looseObject({
  exceptionDetails: z.looseObject({
    text: z.string(),
    exception: z.looseObject({ description: z.string().optional() }).optional(),
  }),
});
const seen = z.object({
  result: z.object({ value: z.object({ text: z.string(), elements: z.number(), isRunning: z.boolean() }) }),
});

/** These go on as long as the page is open, or never have an answer that is seen. */
const endless: ReadonlySet<string> = new Set(['EventSource', 'WebSocket', 'Ping']);

const look = `({
  text: (document.body?.innerText ?? '').slice(0, 20000),
  elements: document.body?.getElementsByTagName('*').length ?? 0,
  isRunning: document.querySelector('[data-testid="stStatusWidget"], ._dash-loading') !== null,
})`;
/** Streamlit shows that the script of the page still runs, and until then an empty page. */
const runningTurns = 18;

/** Visits one address in a browser of its own. */
export async function visit(
  url: URL,
  { settleMs = 5_000, loadMs = 60_000, screenshot }: VisitOptions = {},
): Promise<Page> {
  const tab = await openTab();
  try {
    const { requests, exceptions } = await record(tab);
    const loaded = tab.event('Page.loadEventFired');
    await tab.send('Page.navigate', { url: url.href });
    await Promise.race([loaded, delay(loadMs)]);
    const waits = (): boolean => [...requests.values()].some(({ type, status }) => status === 0 && !endless.has(type));
    const readPage = async (): Promise<{ text: string; elements: number; isRunning: boolean }> =>
      seen.parse(await tab.send('Runtime.evaluate', { expression: look, returnByValue: true })).result.value;
    for (let turn = 0; turn < 6 && (turn === 0 || waits()); turn += 1) await delay(settleMs);
    for (let turn = 0; turn < runningTurns && (await readPage()).isRunning; turn += 1) await delay(settleMs);
    const { text, elements } = await readPage();
    if (screenshot !== undefined) await photograph(tab, screenshot);
    const all = [...requests.values()];
    const status = all.findLast(({ type }) => type === 'Document')?.status ?? 0;
    return { url: url.href, status, text, elements, requests: all, exceptions };
  } finally {
    await tab.close();
  }
}

async function record(tab: Tab): Promise<{ requests: Map<string, Request>; exceptions: string[] }> {
  const requests = new Map<string, Request>();
  const exceptions: string[] = [];
  const answer = (id: string, status: number): void => {
    const request = requests.get(id);
    if (request !== undefined) requests.set(id, { ...request, status });
  };
  tab.on('Network.requestWillBeSent', (params) => {
    const { requestId, type, request } = sent.parse(params);
    requests.set(requestId, { url: request.url, type, status: 0 });
  });
  tab.on('Network.responseReceived', (params) => {
    const { requestId, response } = received.parse(params);
    answer(requestId, response.status);
  });
  tab.on('Network.loadingFailed', (params) => {
    const { requestId, canceled } = failed.parse(params);
    // A page that moves on, or stops a stream, cancels its own requests.
    if (canceled === true && requests.get(requestId)?.type !== 'Document') requests.delete(requestId);
  });
  tab.on('Runtime.exceptionThrown', (params) => {
    const { text, exception } = thrown.parse(params).exceptionDetails;
    exceptions.push((exception?.description ?? text).slice(0, 500));
  });
  for (const domain of ['Page', 'Network', 'Runtime']) await tab.send(`${domain}.enable`);
  return { requests, exceptions };
}

async function photograph(tab: Tab, path: string): Promise<void> {
  const { data } = z.object({ data: z.string() }).parse(await tab.send('Page.captureScreenshot', { format: 'png' }));
  await writeFile(path, Buffer.from(data, 'base64'));
}
