// The failing logs of this folder, what Moorage answers to each of them, and the page that shows both.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { judgeFailure } from '../../../controller/pipeline/build/failure.ts';
import { Fault } from '../../../controller/pipeline/contract.ts';
import { diagnoseCrash } from '../../support/crash.ts';
import { markdownTable } from '../table.ts';

/** What each means is explained on the page. */
const verdict = z.enum(['right', 'half', 'wrong']);

const failingLog = z.strictObject({
  name: z.string(),
  /** The issue where the log was found, or our own page with the line. */
  source: z.string(),
  /** The command of the step (it stands for the Dockerfile's), or the purpose of a planned one. */
  step: z.string().optional(),
  /** Whether Moorage planned the step. Otherwise it is a step of the author's Dockerfile. */
  planned: z.boolean().default(false),
  exit: z.int().default(1),
  /** What the step or the app printed. */
  log: z.string().default(''),
  /** The error of BuildKit, if no step ran. */
  error: z.string().optional(),
  /** Why Kubernetes says that the container ended. */
  reason: z.string().default('Error'),
  /** The true cause, found by reading the log. */
  cause: z.string(),
  /** A pattern that the answer matches, on one line. */
  says: z.string(),
  /** The verdict of the rules' author on the answer of the code before the rules for these logs. */
  before: verdict.optional(),
  /** The verdict on the first answer to a log that was looked up later, before a rule was changed for it. */
  first: verdict.optional(),
  /** The verdict of the second reader on an answer that the rules' author had judged true. */
  second: verdict.optional(),
  now: verdict,
});

/** The logs that the second reader looked up, each file once the rules were changed for the ones before it. */
const looks = ['second-reader.yaml', 'held-out.yaml', 'last-look.yaml'] as const;

export type FailingLog = z.infer<typeof failingLog> & { readonly kind: 'build' | 'crash'; readonly file: string };

export function readFailingLogs(): FailingLog[] {
  return globSync('*.yaml', { cwd: import.meta.dirname })
    .sort()
    .flatMap((file) =>
      z
        .array(failingLog)
        .parse(parse(readFileSync(join(import.meta.dirname, file), 'utf8')))
        .map((each) => ({ ...each, file, kind: each.step === undefined ? ('crash' as const) : ('build' as const) })),
    );
}

/** What the author reads: the rule, the message and the fix. */
export function answerLog(failing: FailingLog): string {
  return failing.kind === 'build' ? answerBuild(failing) : answerCrash(failing);
}

function answerBuild({ step = '', planned, exit, log, error }: FailingLog): string {
  const instruction = /^(?:FROM|COPY|ADD) /.test(step) ? step : `RUN ${step}`;
  const dockerfile = planned
    ? `FROM base\n# step: plan | ${step}\nRUN plan\n`
    : `FROM base\nWORKDIR /app\n${instruction}\n`;
  const command = planned ? 'plan' : step;
  const ended = `process "/bin/sh -c ${command}" did not complete successfully: exit code: ${exit}`;
  const lines = log.split('\n').map((line, index) => `#7 ${index}.123 ${line}\n`);
  const excerpt = `Dockerfile:3\n--------------------\n   1 |     FROM base\n   3 | >>> ${planned ? 'RUN plan' : instruction}\n--------------------\n`;
  const output =
    error === undefined
      ? `#7 [2/2] ${instruction}\n${lines.join('')}#7 ERROR: ${ended}\n------\n${excerpt}error: failed to solve: ${ended}\n`
      : `${excerpt}error: ${error}\n`;
  const answer = judgeFailure({ output, dockerfile, ...(planned ? {} : { authored: 'Dockerfile' }) });
  if (answer instanceof Fault) return `(a fault of the platform) ${answer.message}`;
  const [{ rule, message, fix }] = answer.findings;
  return `${rule}: ${message} ${fix}`;
}

/** The kubelet keeps the last 2,048 bytes of a log. */
const keptBytes = 2_048;

function answerCrash({ log, exit, reason }: FailingLog): string {
  const found = diagnoseCrash({ log: log.slice(-keptBytes), exitCode: exit, reason });
  return found === undefined ? '(nothing)' : `${found.rule}: ${found.message} ${found.fix}`;
}

const labels = { right: 'true', half: 'half true', wrong: 'untrue' } as const;

/** docs/measured/failing-logs.md */
export function renderPage(logs: readonly FailingLog[]): string {
  const own = logs.filter(({ before }) => before !== undefined);
  const later = own.filter(({ first }) => first !== undefined);
  const [second = [], third = [], fourth = []] = looks.map((look) => logs.filter(({ file }) => file === look));
  const series: readonly (readonly [
    title: string,
    logs: readonly FailingLog[],
    field: 'before' | 'first' | 'second' | 'now',
  ])[] = [
    [`${own.length} logs, before there were rules for them (judged by the rules' author)`, own, 'before'],
    [`${later.length} of them, looked up once the rules were done: first answer (rules' author)`, later, 'first'],
    [`the ${own.length} logs, when the rules' author judged all of them true (second reader)`, own, 'second'],
    [`${second.length} logs that the second reader looked up: first answer`, second, 'first'],
    [`${third.length} more, looked up once rules were changed for those: first answer (second reader)`, third, 'first'],
    [
      `${fourth.length} more after those, several of them apps with models: first answer (second reader)`,
      fourth,
      'first',
    ],
    [`all ${logs.length}, now (second reader)`, logs, 'now'],
  ];
  const sums = series.map(([title, some, field]) => [
    title,
    ...verdict.options.map((kind) => some.filter((each) => each[field] === kind).length),
  ]);
  const rows = logs.map((each) => [
    each.name,
    each.source.startsWith('https:')
      ? `[${each.source.replace('https://github.com/', '')}](${each.source})`
      : each.source,
    each.cause,
    answerLog(each),
    [each.before, each.first].flatMap((found) => (found === undefined ? [] : labels[found])).join(', then '),
    each.second === undefined ? '' : labels[each.second],
    labels[each.now],
  ]);
  return `# Failing logs

Generated by \`npm run show:failing-logs -- --publish docs/measured/failing-logs.md\` from [test/corpus/logs](../../test/corpus/logs): ${logs.length} logs of builds and crashes, from public issues and from our own runs of the corpus. A test fails if an answer changes, so that it is judged again.

The logs are shortened to what tools print, and names of projects, files and people are replaced where they say nothing. In eight of the second reader's logs, of which an issue quotes only the end, lines that the tool always prints before it are filled in (the head of a stack trace, a frame of the app). The true cause of each was found by reading it, and so was the verdict on what Moorage answers:

- *true*: it names the cause, or quotes the line that shows it with a neutral next step.
- *half true*: the cause is right and the advice does not fit, the quoted line lacks what decides, or the log does not prove the cause.
- *untrue*: it names another cause, or shows nothing of it.

Two readers judged. The first wrote the rules and the verdicts on the first ${own.length} logs. The second wrote none of those rules and judged the answers again from the logs; about 45 of those answers were in sight before the log was read. The second reader then looked up logs of small web apps in nine languages (one or more whole logs from each search for a language's failing builds and crashes), noted their causes, judged the first answers, and only then changed rules. After that, this reader is no longer independent of the rules either: the last line of the table says that the known logs are answered, and the first answers say what to expect of an unknown one.

${markdownTable(['', 'true', 'half true', 'untrue'], sums)}

${markdownTable(['log', 'source', 'true cause', 'what the author reads', 'at first', 'second reader', 'now'], rows)}
`;
}
