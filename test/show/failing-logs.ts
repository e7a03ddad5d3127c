// Shows what Moorage answers to the failing logs of test/corpus/logs: of each log its true cause, the answer and how it was
// judged.
//   npm run show:failing-logs [-- --publish docs/measured/failing-logs.md] [--only TEXT]
import { writeFileSync } from 'node:fs';
import { readCommandLine } from '../../lib/command-line.ts';
import { answerLog, readFailingLogs, renderPage } from '../corpus/logs/corpus.ts';

const usage = 'usage: npm run show:failing-logs [-- --publish FILE] [--only TEXT]';
const { publish, only } = readCommandLine(
  { usage, options: { publish: { type: 'string', default: '' }, only: { type: 'string', default: '' } } },
  ({ values }) => ({ publish: values.publish, only: values.only }),
);

const logs = readFailingLogs();
for (const each of logs.filter(({ file, name }) => `${file} ${name}`.includes(only))) {
  const answer = answerLog(each);
  const mark = new RegExp(each.says, 's').test(answer) ? ' ' : '✗';
  process.stdout.write(
    `${mark} ${each.file}: ${each.name} (${each.now})\n    cause: ${each.cause}\n    answer: ${answer}\n`,
  );
}
if (publish !== '') writeFileSync(publish, renderPage(logs));
