// A call of a tool over the gateway of the cluster, waited for where it became a job, with the file that it made.
import { z } from 'zod';
import { baseUrl, get, getBytes, type Answer } from '../cluster.ts';

export const envelope = z.looseObject({
  result: z.looseObject({}).optional(),
  cost_usd: z.number().nullish(),
  cost_source: z.string().optional(),
  latency_ms: z.number().optional(),
  detail: z.string().optional(),
  type: z.string().optional(),
  artifact: z.looseObject({ media_type: z.string(), file_name: z.string(), bytes: z.int(), url: z.url() }).optional(),
  /** Its id alone, where the job has failed. */
  job: z.union([z.looseObject({ poll_url: z.url() }), z.string()]).optional(),
});
export type Envelope = z.output<typeof envelope>;

export interface ClusterCall {
  readonly status: number;
  readonly envelope: Envelope;
  readonly file: Uint8Array;
  readonly milliseconds: number;
}

export async function callOnCluster(
  name: string,
  input: object,
  options: Readonly<Record<string, string>> = {},
): Promise<ClusterCall> {
  const begun = performance.now();
  const answer = await settled(
    await get(new URL(`/t/${name}?${new URLSearchParams(options).toString()}`, baseUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input),
    }),
  );
  const milliseconds = performance.now() - begun;
  const read = envelope.parse(JSON.parse(answer.body));
  const file = read.artifact === undefined ? new Uint8Array() : await getBytes(here(read.artifact.url));
  return { status: answer.status, envelope: read, file, milliseconds };
}

async function settled(answer: Answer): Promise<Answer> {
  const { job, result, detail } = envelope.parse(JSON.parse(answer.body));
  if (job === undefined || typeof job === 'string' || result !== undefined || detail !== undefined) return answer;
  const url = here(job.poll_url);
  url.searchParams.set('wait', '30');
  return settled(await get(url));
}

/** The link as it leads through the gateway here. */
function here(link: string): URL {
  const { pathname, search } = new URL(link);
  return new URL(`${pathname}${search}`, baseUrl);
}
