// Measures check_grammar on the sentences of test/corpus/grammar: English by Harper and by LanguageTool, German, French
// and Spanish by LanguageTool. Prints a table, and each sentence that was changed wrongly.
//   npm run show:grammar [-- --publish docs/measured/grammar.md] [--only harper]
import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import { createCheckGrammarTool, askLanguageTool } from '../../api/tools/builtin/check-grammar/check-grammar.ts';
import { judgeMatches, applyCorrections } from '../../api/tools/builtin/check-grammar/judge.ts';
import { createWorkers } from '../../api/tools/engine/workers/pool.ts';
import { readCommandLine } from '../../lib/command-line.ts';
import { languages, scoreOf, sentencesOf, verdictOf, type Verdict } from '../corpus/grammar/corpus.ts';
import { startLanguageTool } from '../support/services/languagetool.ts';
import { call, servicesWith } from '../support/tools/call.ts';

const usage = 'usage: npm run show:grammar [-- --publish FILE] [--only harper]';
const { publish, only } = readCommandLine(
  { usage, options: { publish: { type: 'string', default: '' }, only: { type: 'string', default: '' } } },
  ({ values }) => ({ publish: values.publish, only: values.only }),
);

type Check = (text: string, language: string) => Promise<string>;

const workers = createWorkers();
const server = only === 'harper' ? undefined : await startLanguageTool();
const urls = server === undefined ? {} : { languagetool: server.url };
const tool = createCheckGrammarTool(servicesWith({ workers, urls }));
const signal = AbortSignal.timeout(1_200_000);
const byTool: Check = async (text, language) =>
  z.object({ corrected: z.string() }).parse((await call(tool, { text, language })).result).corrected;
/** What the tool would make of English if LanguageTool checked it. The sentences are British. */
const byLanguageTool: Check = async (text, language) => {
  const { matches } = await askLanguageTool(urls, { text, language: language === 'en' ? 'en-GB' : language, signal });
  const ordered = matches.toSorted((one, other) => one.offset - other.offset);
  return applyCorrections(text, judgeMatches(text, language, ordered).applied);
};

const rows: string[] = [];
const wrongly: string[] = [];
const missed: string[] = [];
await measure('en', 'Harper', byTool);
if (server !== undefined) {
  await measure('en', 'LanguageTool', byLanguageTool);
  for (const language of languages.filter((each) => each !== 'en')) await measure(language, 'LanguageTool', byTool);
  await server.stop();
}
await workers.close();
process.stdout.write(`${wrongly.join('\n')}\n\n${missed.join('\n')}\n\n${table()}`);
if (publish !== '') writeFileSync(publish, report());

async function measure(language: (typeof languages)[number], checker: string, check: Check): Promise<void> {
  const verdicts: Verdict[] = [];
  const sentences = sentencesOf(language);
  for (const sentence of sentences) {
    const answer = await check(sentence.given, language).catch((error: unknown) => String(error));
    const verdict = verdictOf(sentence, answer);
    verdicts.push(verdict);
    if (verdict === 'changed wrongly') wrongly.push(`- ${checker}: ${sentence.given} → ${answer}`);
    if (verdict === 'missed') missed.push(`- ${checker}: ${sentence.given}`);
  }
  const { right, wrong, precision, recall } = scoreOf(verdicts);
  rows.push(
    `| ${language} | ${checker} | ${sentences.length} | ${right} | ${wrong} | ${precision.toFixed(3)} | ${recall.toFixed(3)} |`,
  );
}

function table(): string {
  return `| language | checker | sentences | changed rightly | changed wrongly | precision | recall |\n|---|---|---|---|---|---|---|\n${rows.join('\n')}\n`;
}

function report(): string {
  return `# Grammar

Written by \`npm run show:grammar -- --publish docs/measured/grammar.md\` from the sentences in [test/corpus/grammar](../../test/corpus/grammar): half of them are right, with names, code, addresses and quotes, half have one known error. They are hand-made: no package that may be used here has such a corpus.

What counts is \`corrected\`. Precision: of the sentences that it changed, those that became right. Recall: of the sentences with an error, those that became right. The tool asks LanguageTool for every language but English. With the option only=harper its rows are left out; else there is one for English too, which says what it would do.

${table()}
Changed wrongly:

${wrongly.length === 0 ? 'None.' : wrongly.join('\n')}
`;
}
