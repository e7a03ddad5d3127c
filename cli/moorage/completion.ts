// Writes the completion scripts of bash, zsh and fish from the definitions of the commands.
import { UsageError } from '../../lib/command-line.ts';
import { type Command, commonOptions, defineCommand, type OptionSpecs } from './program.ts';

const shells = ['bash', 'zsh', 'fish'] as const;

/** The command that prints the scripts. @param list all commands, itself among them */
export function createCompletionCommand(list: () => readonly Command[]): Command {
  return defineCommand({
    name: 'completion',
    group: 'Other',
    summary: 'Print the completion script of a shell',
    arguments: [{ name: 'SHELL', choices: shells, about: shells.join(', ') }],
    examples: [
      'eval "$(moorage completion bash)"      # in ~/.bashrc',
      'eval "$(moorage completion zsh)"       # in ~/.zshrc',
      'moorage completion fish | source       # in ~/.config/fish/config.fish',
    ],
    run: ({ positionals: [wanted] }, { terminal }) => {
      const shell = shells.find((each) => each === wanted);
      if (shell === undefined) throw new UsageError(`SHELL is one of ${shells.join(', ')}`);
      const script = renderCompletion(shell, list());
      terminal.printResult({ shell, script }, () => script.trimEnd());
      return Promise.resolve(undefined);
    },
  });
}

export function renderCompletion(shell: (typeof shells)[number], commands: readonly Command[]): string {
  const tree = toTree(commands);
  return { bash: renderBash, zsh: renderZsh, fish: renderFish }[shell](tree);
}

/** A first word, with the second words of a family, or the options of a command. */
interface Word {
  readonly name: string;
  readonly about: string;
  readonly commands: readonly Command[];
}

function toTree(commands: readonly Command[]): Word[] {
  const names = [...new Set(commands.map(({ name }) => name.split(' ')[0] ?? name))];
  return names.map((name) => {
    const members = commands.filter((command) => command.name.split(' ')[0] === name);
    const [only] = members;
    const about =
      only?.name === name ? only.summary : members.map((member) => member.name.slice(name.length + 1)).join(', ');
    return { name, about, commands: members };
  });
}

const listOptions = (command: Command): OptionSpecs => ({ ...command.options, ...commonOptions });

/** Values that an option or the only argument of a command accepts. */
function listChoices({ arguments: specs }: Command): readonly string[] {
  return specs[0]?.choices ?? [];
}

const isFamily = ({ name, commands }: Word): boolean => commands.every((command) => command.name !== name);

/** Second words, and the choices of an argument. */
function listFollowing(word: Word): readonly string[] {
  if (isFamily(word)) return word.commands.map(({ name }) => name.slice(word.name.length + 1));
  return word.commands.flatMap(listChoices);
}

function formatFlags(options: OptionSpecs): string {
  return Object.entries(options)
    .flatMap(([name, { short }]) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])])
    .join(' ');
}

// Without a candidate, bash and zsh offer files.

function renderBash(tree: readonly Word[]): string {
  const values = renderValueCases(
    tree,
    (choices) => `COMPREPLY=($(compgen -W '${choices.join(' ')}' -- "$current")); return`,
  );
  const following = tree
    .filter((word) => listFollowing(word).length > 0)
    .map((word) => `    ${word.name}) candidates='${listFollowing(word).join(' ')}' ;;`);
  const options = tree.flatMap(({ commands }) =>
    commands.map((command) => `    '${command.name}') candidates='${formatFlags(listOptions(command))}' ;;`),
  );
  return `# Completion of moorage for bash: eval "$(moorage completion bash)"
_moorage() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} candidates='' first='' second='' index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case \${COMP_WORDS[index]} in
      -*) ;;
      *) if [ -z "$first" ]; then first=\${COMP_WORDS[index]}; elif [ -z "$second" ]; then second=\${COMP_WORDS[index]}; fi ;;
    esac
  done
  COMPREPLY=()
${values}
  if [ -z "$first" ]; then
    candidates='${tree.map(({ name }) => name).join(' ')} --help --version'
  elif [ "\${current#-}" != "$current" ]; then
    case $first in
    ${tree
      .filter(isFamily)
      .map(({ name }) => name)
      .join(' | ')}) first="$first $second" ;;
    esac
    case $first in
${options.join('\n')}
    esac
  elif [ -z "$second" ]; then
    case $first in
${following.join('\n')}
    esac
  fi
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _moorage moorage
`;
}

/** What completes the values of options that have a list of them. */
function renderValueCases(tree: readonly Word[], render: (choices: readonly string[]) => string): string {
  const all = tree.flatMap(({ commands }) => commands.flatMap((command) => Object.entries(command.options)));
  const known = new Map(
    all.flatMap(([name, { choices }]) => (choices === undefined ? [] : [[name, choices] as const])),
  );
  const cases = [...known].map(([name, choices]) => `    --${name}) ${render(choices)} ;;`);
  return cases.length === 0 ? '' : `  case $previous in\n${cases.join('\n')}\n  esac`;
}

function renderZsh(tree: readonly Word[]): string {
  const describe = (name: string, about: string): string => quoteShell(`${name.replaceAll(':', '\\:')}:${about}`);
  const following = tree
    .filter((word) => listFollowing(word).length > 0)
    .map((word) => {
      const entries = isFamily(word)
        ? word.commands.map(({ name, summary }) => describe(name.slice(word.name.length + 1), summary))
        : listFollowing(word).map((choice) => describe(choice, ''));
      return `      ${word.name}) candidates=(${entries.join(' ')}) ;;`;
    });
  const options = tree.flatMap(({ commands }) =>
    commands.map((command) => {
      const entries = Object.entries(listOptions(command)).map(([name, { about }]) => describe(`--${name}`, about));
      return `      ${quoteShell(command.name)}) candidates=(${entries.join(' ')}) ;;`;
    }),
  );
  const values = renderValueCases(tree, (choices) => `compadd -- ${choices.join(' ')}; return`);
  return `#compdef moorage
# Completion of moorage for zsh: eval "$(moorage completion zsh)"
_moorage() {
  local -a candidates
  local current=\${words[CURRENT]} previous=\${words[CURRENT-1]} first='' second='' word
  for word in \${words[2,CURRENT-1]}; do
    case $word in
      -*) ;;
      *) if [ -z "$first" ]; then first=$word; elif [ -z "$second" ]; then second=$word; fi ;;
    esac
  done
${values}
  if [ -z "$first" ]; then
    candidates=(
${tree.map(({ name, about }) => `      ${describe(name, about)}`).join('\n')}
    )
  elif [ "\${current#-}" != "$current" ]; then
    case $first in
      ${tree
        .filter(isFamily)
        .map(({ name }) => name)
        .join(' | ')}) first="$first $second" ;;
    esac
    case $first in
${options.join('\n')}
    esac
  elif [ -z "$second" ]; then
    case $first in
${following.join('\n')}
    esac
  fi
  if [ \${#candidates} -eq 0 ]; then _files; else _describe moorage candidates; fi
}
compdef _moorage moorage
`;
}

function renderFish(tree: readonly Word[]): string {
  const first = tree.map(
    ({ name, about }) => `complete -c moorage -f -n __fish_use_subcommand -a ${name} -d ${quoteShell(about)}`,
  );
  const rest = tree.flatMap((word) =>
    word.commands.flatMap((command) => {
      const [, second = ''] = command.name.split(' ');
      const seen = `__fish_seen_subcommand_from ${word.name}`;
      const inFamily = word.commands.map(({ name }) => name.slice(word.name.length + 1)).join(' ');
      const condition = second === '' ? seen : `${seen}; and __fish_seen_subcommand_from ${second}`;
      return [
        ...(second === ''
          ? []
          : [
              `complete -c moorage -f -n ${quoteShell(`${seen}; and not __fish_seen_subcommand_from ${inFamily}`)} -a ${second} -d ${quoteShell(command.summary)}`,
            ]),
        ...listChoices(command).map((choice) => `complete -c moorage -f -n ${quoteShell(condition)} -a ${choice}`),
        ...Object.entries(listOptions(command)).map(([name, { short, about, value, choices }]) =>
          [
            `complete -c moorage -n ${quoteShell(condition)} -l ${name}`,
            ...(short === undefined ? [] : [`-s ${short}`]),
            ...(value === undefined ? [] : ['-r']),
            ...(choices === undefined ? [] : [`-f -a ${quoteShell(choices.join(' '))}`]),
            `-d ${quoteShell(about)}`,
          ].join(' '),
        ),
      ];
    }),
  );
  return `# Completion of moorage for fish: moorage completion fish | source\n${[...first, ...rest].join('\n')}\n`;
}

/** Text in single quotes, as bash, zsh and fish read it. */
function quoteShell(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", `'"'"'`)}'`;
}
