// Page of the commands of `moorage`.
import { commands } from '../../cli/moorage/commands.ts';
import {
  type Command,
  commonOptions,
  exitCodeMeanings,
  formatExample,
  formatOption,
  formatUsage,
  groups,
  type OptionSpecs,
} from '../../cli/moorage/program.ts';
import { formatCode, joinBlocks, renderTable, renderTableOr, type Page } from './page.ts';

/** Variables that replace options, and where the program keeps its keys. */
const variables: readonly (readonly [string, string])[] = [
  ['MOORAGE_API', 'address of the installation, if `--api` is not given'],
  ['MOORAGE_KEY', 'author key; takes precedence over the stored one'],
  ['MOORAGE_CA', 'certificate authority to trust, if `--ca-file` is not given'],
  ['XDG_CONFIG_HOME', 'folder of `moorage/config.json`, which has the keys by installation; default `~/.config`'],
  ['NO_COLOR', 'if it is not empty, the output has no colours'],
];

function renderOptions(options: OptionSpecs): string {
  const rows = Object.entries(options).map(([name, spec]) => [formatCode(formatOption(name, spec)), spec.about]);
  return renderTableOr('', ['Option', 'Meaning'], rows);
}

function renderCommand(command: Command): string {
  const { name, summary, details, arguments: specs, options, examples } = command;
  return joinBlocks(
    `### ${name}`,
    `${summary}.`,
    ...details,
    `\`\`\`text\n${formatUsage(command)}\n\`\`\``,
    renderTableOr(
      '',
      ['Argument', 'Meaning'],
      specs.map((spec) => [formatCode(spec.name), spec.about]),
    ),
    renderOptions(options),
    `\`\`\`sh\n${examples.map(formatExample).join('\n')}\n\`\`\``,
  );
}

export const cli: Page = {
  file: 'cli.md',
  title: 'Command line',
  about: 'Every command of `moorage`, the program with which authors run their apps.',
  sources: ['cli/moorage/commands.ts', 'cli/moorage/program.ts'],
  render: () =>
    joinBlocks(
      'In a checkout of Moorage, `npx moorage` starts it with the right version of Node. `npm link` makes it available everywhere as `moorage`.',
      'The installation is that of `--api`, of `MOORAGE_API`, of the last `moorage login`, or the cluster on this machine. `APP` is the name of an app, `OWNER/NAME` or the address of its repository; in a clone of the repository, leave it out.',
      '## Options of every command',
      renderOptions(commonOptions),
      '## Variables',
      renderTable(
        ['Variable', 'Meaning'],
        variables.map(([name, meaning]) => [formatCode(name), meaning]),
      ),
      '## Exit codes',
      'Results are written to standard output, and notes and errors to standard error. A refusal of the API is printed with its title, its detail, its fix and the id of the request; with `--json`, as the problem (RFC 9457) itself.',
      renderTable(
        ['Code', 'Meaning'],
        exitCodeMeanings.map(([code, meaning]) => [String(code), meaning]),
      ),
      ...groups.flatMap((group) => [
        `## ${group}`,
        ...commands.filter((command) => command.group === group).map(renderCommand),
      ]),
    ),
};
