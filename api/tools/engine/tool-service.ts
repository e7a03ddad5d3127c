// Takes a call that has been read, and answers it: at once, or as a job where the tool takes long. For /t, /mcp and
// whoever else.
import { Problem } from '../../../lib/problem.ts';
import { httpProblems, invalidIn } from '../../http/index.ts';
import { billingProblems } from '../../billing/problems.ts';
import { modelProblems } from '../../models/problems.ts';
import type { ArtifactStore } from './artifacts/artifact-store.ts';
import { artifactUrl } from './artifacts/endpoint.ts';
import { jobCost } from './cost.ts';
import type { Answered, Asked, JobName, JobStanding, LongCalls, Told } from './tool-call.ts';
import { noArtifact, toolFailed, toolProblems } from '../problems.ts';
import { refuseRaw } from './raw.ts';
import type { Ran, Runner } from './runner.ts';
import type { Artifact, Tool } from '../tool.ts';
import type { Toolbox } from './tool-registry.ts';

export interface DeskOptions {
  readonly toolbox: Toolbox;
  readonly runner: Runner;
  readonly baseUrl: string;
  /** Without it, who calls a tool that takes long waits for it. */
  readonly jobs: LongCalls | undefined;
  /** Keeps files for those who want a link to them. */
  readonly artifacts: Pick<ArtifactStore, 'keep'>;
}

export class Desk {
  readonly #options: DeskOptions;

  constructor(options: DeskOptions) {
    this.#options = options;
  }

  /** @throws Problem */
  async answer(asked: Asked): Promise<Answered> {
    const {
      tool,
      reading: { input, options },
      delivery,
    } = asked;
    const fileWanted = delivery !== 'json';
    if (fileWanted) refuseRaw(tool);
    const { jobs } = this.#options;
    if (jobs !== undefined && options.job !== undefined) return this.#job(jobs, asked, options.job);
    this.#options.toolbox.refuseOff(tool);
    if (jobs !== undefined && tool.long === true)
      return this.#job(
        jobs,
        asked,
        await jobs.begin({ tool: tool.name, input, payer: asked.payer, session: options.s }),
      );
    const { payer, via, id, signal, log, report } = asked;
    const ran = await this.#options.runner
      .run({
        tool,
        input,
        payer,
        via,
        id,
        signal,
        log,
        fileWanted,
        session: options.s,
        ...(report === undefined ? {} : { report }),
      })
      .catch((error: unknown) => {
        // A tool knows its fields, and not where they were sent.
        throw invalidIn(asked.reading.part, error);
      });
    return { ran, job: undefined, told: { tool, requestId: id, ...(await this.#link(asked, ran.artifact)) } };
  }

  /** Has run and is paid for: that a file cannot be kept must not spoil the answer, which then carries it inside. */
  async #link(
    { payer, delivery, log }: Asked,
    artifact: Artifact | undefined,
  ): Promise<Pick<Told, 'fileUrl' | 'fileUntil' | 'fileId'>> {
    if (artifact === undefined || delivery === 'file') return { fileUrl: undefined };
    try {
      const kept = await this.#options.artifacts.keep(payer.owner, artifact);
      return kept === undefined
        ? { fileUrl: undefined }
        : { fileId: kept.id, fileUrl: artifactUrl(this.#options.baseUrl, kept.id), fileUntil: kept.expiresAt };
    } catch (error) {
      // Without a database, nothing is kept at all.
      if (!(error instanceof Problem)) log.error({ err: error }, 'a file cannot be kept');
      return { fileUrl: undefined };
    }
  }

  async #job(
    jobs: LongCalls,
    { tool, payer, id: requestId, reading: { options }, delivery, waitMs, signal, report }: Asked,
    id: string,
  ): Promise<Answered> {
    const { baseUrl } = this.#options;
    const name = { id, tool: tool.name, owner: payer.owner };
    const ms = options.wait === undefined ? waitMs : options.wait * 1_000;
    const job = await jobs.wait(name, { ms, signal: signal(), ...(report === undefined ? {} : { report }) });
    if (job.state === 'failed') throw failed(job);
    const pollUrl = `${baseUrl}/t/${tool.name}?job=${id}`;
    const told: Told = { tool, requestId, pollUrl, ...linkOf(job, baseUrl, pollUrl) };
    // Who begins a job gets its handle in any case.
    if (delivery !== 'json' && options.job !== undefined) refuseMissing(job, tool);
    return { job, told, ran: job.state === 'done' ? await ranOf(jobs, name, job) : undefined };
  }
}

function linkOf(
  { artifact, expiresAt }: JobStanding,
  baseUrl: string,
  pollUrl: string,
): Pick<Told, 'fileUrl' | 'fileUntil'> {
  if (artifact === undefined) return { fileUrl: undefined };
  return {
    fileUrl: artifact.id === undefined ? `${pollUrl}&raw=1` : artifactUrl(baseUrl, artifact.id),
    fileUntil: expiresAt,
  };
}

async function ranOf(jobs: LongCalls, name: JobName, job: JobStanding): Promise<Ran> {
  const artifact = job.artifact === undefined ? undefined : await jobs.artifact(name);
  const latencyMs = job.endedAt === undefined ? 0 : job.endedAt.getTime() - job.createdAt.getTime();
  return { result: job.result ?? {}, artifact, latencyMs, cost: jobCost(job), quota: undefined };
}

function refuseMissing(job: JobStanding, { name }: Tool): void {
  if (job.state !== 'done')
    throw new Problem(noArtifact, `the job is ${job.state} and has no file yet; ask again, with wait=60`, {
      headers: { 'retry-after': '5' },
    });
  if (job.artifact === undefined)
    throw new Problem(noArtifact, `${name} made no file in this job; leave raw out to get its answer`);
}

/** The problem that ended a job, as it would have ended a call. */
function failed({ id, problem }: JobStanding): Problem {
  const types = [...httpProblems, ...billingProblems, ...modelProblems, ...toolProblems];
  const type = types.find(({ slug }) => slug === problem?.slug) ?? toolFailed;
  return new Problem(type, problem?.detail ?? 'the job failed', { members: { ...problem?.members, job: id } });
}
