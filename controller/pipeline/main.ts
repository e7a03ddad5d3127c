// Entry point of every pipeline container: runs one stage, writes its termination message, and exits with the
// contract's code.
import { writeFile } from 'node:fs/promises';
import { containers, type PipelineContainer } from '../../crds/names.ts';
import {
  doubtfulExitCode,
  DoubtfulFault,
  Fault,
  NotReached,
  type PipelineFault,
  Rejected,
  rejectedExitCode,
  readPipelineConfig,
  getTerminationLog,
  type PipelineConfig,
  Unprepared,
  unpreparedExitCode,
} from './contract.ts';
import { createPipelineMask, formatFinding, formatTermination, maskMessage, type StageMessage } from './message.ts';
import { hasPassed, runWithGate } from './handover.ts';
import { toOneLine } from './text.ts';
import { MaskedLines, type SecretMask } from '../../lib/secret-mask.ts';

const faultExitCode = 1;
const stoppedExitCode = 143;

const stop = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => {
    stop.abort(new Fault(`stopped by ${signal}`));
  });

/** Masks secrets in output: the log is public, and the author's code runs in the same pod. */
let mask: SecretMask = (text) => text;

const printLine = (text: string): void => {
  process.stdout.write(`${mask(text)}\n`);
};

/** Prints only whole lines, so that no secret is split across two writes. */
const lines = new MaskedLines(
  (text) => mask(text),
  (text) => {
    process.stdout.write(text);
  },
);

type RunStage = (config: PipelineConfig) => Promise<StageMessage>;

/** Loads only the code of one stage: the three containers start at the same time and share the processors. */
async function loadStage(stage: PipelineContainer): Promise<RunStage> {
  switch (stage) {
    case 'clone': {
      const { clone } = await import('./clone/clone.ts');
      return ({ input, paths, gitToken, deployKey }) =>
        runWithGate(paths, 'clone', () => clone(input, paths, { printLine, gitToken, deployKey, signal: stop.signal }));
    }
    case 'review': {
      const { review } = await import('./review/review.ts');
      return ({ input, paths }) =>
        runWithGate(paths, 'review', async () => {
          if (!(await hasPassed(paths, 'clone', stop.signal)))
            throw new NotReached('the clone did not complete, so nothing is reviewed');
          return review(input, paths, printLine, stop.signal);
        });
    }
    case 'build': {
      const { build } = await import('./build/build.ts');
      return ({ input, paths, pushToken }) =>
        build(input, paths, {
          printLine,
          pushToken,
          write: (chunk) => {
            lines.write(chunk);
          },
          signal: stop.signal,
        });
    }
  }
}

/** Maps an error to a termination message and an exit code. */
function toOutcome(error: unknown): { message: StageMessage; code: number } {
  if (error instanceof Rejected) {
    for (const each of error.findings) printLine(formatFinding(each));
    return {
      message: {
        rejected: true,
        findings: [...error.findings],
        ...(error.log === undefined ? {} : { log: error.log }),
      },
      code: rejectedExitCode,
    };
  }
  if (error instanceof Unprepared) {
    printLine(`${error.message}: the pipeline starts again once the installation has made them.`);
    return { message: { unprepared: [...error.images] }, code: unpreparedExitCode };
  }
  if (stop.signal.aborted)
    return { message: toFaultMessage('the stage was stopped before it completed'), code: stoppedExitCode };
  const message = toFaultMessage(toOneLine(error instanceof Error ? error.message : String(error)), error);
  return error instanceof DoubtfulFault
    ? { message: { ...message, doubtful: true }, code: doubtfulExitCode }
    : { message, code: faultExitCode };
}

function toFaultMessage(fault: string, error?: unknown): PipelineFault {
  const isUnexpected = error instanceof Error && !(error instanceof Fault);
  process.stderr.write(`fault: ${mask(isUnexpected ? (error.stack ?? fault) : fault)}\n`);
  return { fault };
}

async function main(): Promise<number> {
  const stage = containers.find((each) => each === process.argv[2]);
  if (stage === undefined) {
    process.stderr.write(`usage: main.ts ${containers.join(' | ')}\n`);
    return faultExitCode;
  }
  const { message, code } = await runStage(stage);
  lines.end();
  await writeFile(getTerminationLog(), formatTermination(maskMessage(message, mask)));
  return code;
}

async function runStage(stage: PipelineContainer): Promise<{ message: StageMessage; code: number }> {
  try {
    const run = await loadStage(stage);
    const config = readPipelineConfig();
    mask = createPipelineMask(config);
    return { message: await run(config), code: 0 };
  } catch (error) {
    // The stage that did not pass decides whether the pipeline is rejected or retried.
    return error instanceof NotReached ? { message: { fault: error.message }, code: 0 } : toOutcome(error);
  }
}

// Exit explicitly: idle keep-alive connections would keep the container running.
process.exit(await main());
