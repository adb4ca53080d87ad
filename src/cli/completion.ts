/** Scripts that make a shell complete commands, options and their values: written from the commands themselves, so that they need no start of Node at each press of the key. */
import type { Command } from 'commander';

export type Shell = 'bash' | 'zsh' | 'fish';

interface CompletedOption {
  /** `-f`, `--format` */
  readonly names: readonly string[];
  readonly takesValue: boolean;
  /** What it takes, where that is a choice of few. */
  readonly choices: readonly string[];
  readonly description: string;
}

interface CompletedCommand {
  /** `jobs list`; empty for the program itself. */
  readonly path: string;
  readonly subcommands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
  /** What its first argument is, where that is a choice of few. */
  readonly choices: readonly string[];
}

export function completionScript(shell: Shell, program: Command): string {
  const commands = commandsOf(program);
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](program.name(), commands);
}

function commandsOf(command: Command, path: readonly string[] = []): CompletedCommand[] {
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command).filter((sub) => sub.name() !== 'help');
  const options = help.visibleOptions(command).map(
    (option): CompletedOption => ({
      names: [option.short, option.long].filter((name) => name !== undefined),
      takesValue: option.required || option.optional,
      choices: option.argChoices ?? [],
      description: option.description,
    }),
  );
  const here = {
    path: path.join(' '),
    subcommands: subcommands.map((sub) => ({ name: sub.name(), description: sub.description() })),
    options,
    choices: command.registeredArguments[0]?.argChoices ?? [],
  };
  return [here, ...subcommands.flatMap((sub) => commandsOf(sub, [...path, sub.name()]))];
}

/** Single quotes mean nothing but themselves in all three shells, apart from the quote itself. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** What the words before the cursor name; the same `case` in bash and zsh, into a variable (`path` is a special one of zsh). */
function pathCases(commands: readonly CompletedCommand[], variable: string): string {
  return commands
    .filter(({ path }) => path !== '')
    .map(({ path }) => {
      const words = path.split(' ');
      const parent = words.slice(0, -1).join(' ');
      return `      ${quoted(`${parent}/${words.at(-1)}`)}) ${variable}=${quoted(path)} ;;`;
    })
    .join('\n');
}

function bashScript(name: string, commands: readonly CompletedCommand[]): string {
  const cases = commands.map(({ path, subcommands, options, choices }) => {
    const values = options
      .filter(({ takesValue }) => takesValue)
      .map(
        (option) =>
          `        ${option.names.join('|')}) values ${quoted(option.choices.join(' '))}; return ;;`,
      );
    const words = [...subcommands.map((sub) => sub.name), ...choices];
    return `    ${quoted(path)})
      case $before in
${values.join('\n')}
      esac
      case $word in
        -*) values ${quoted(options.flatMap((option) => option.names).join(' '))} ;;
        *) values ${quoted(words.join(' '))} ;;
      esac ;;`;
  });
  return `# bash completion for ${name}; in ~/.bashrc: source <(${name} completion bash)
_${name}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} at='' index
  values() { COMPREPLY=($(compgen -W "$1" -- "$word")); }
  # --format=mp3 comes as three words.
  if [[ $word == '=' ]]; then word=''; elif [[ $before == '=' ]]; then before=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$at/\${COMP_WORDS[index]}" in
${pathCases(commands, 'at')}
    esac
  done
  COMPREPLY=()
  case $at in
${cases.join('\n')}
  esac
}
# Where nothing of ours fits, a file may.
complete -o bashdefault -o default -F _${name} ${name}`;
}

function zshScript(name: string, commands: readonly CompletedCommand[]): string {
  const described = (word: string, description: string): string =>
    quoted(`${word.replaceAll(':', '\\:')}:${description}`);
  const cases = commands.map(({ path, subcommands, options, choices }) => {
    const values = options
      .filter(({ takesValue }) => takesValue)
      .map((option) =>
        option.choices.length === 0
          ? `        ${option.names.join('|')}) _files; return ;;`
          : `        ${option.names.join('|')}) compadd -- ${option.choices.map(quoted).join(' ')}; return ;;`,
      );
    const flags = options.flatMap((option) =>
      option.names.map((flag) => described(flag, option.description)),
    );
    const words = [
      ...subcommands.map((sub) => described(sub.name, sub.description)),
      ...choices.map((choice) => described(choice, choice)),
    ];
    return `    ${quoted(path)})
      case $before in
${values.join('\n')}
      esac
      flags=(${flags.join(' ')})
      subcommands=(${words.join(' ')}) ;;`;
  });
  return `#compdef ${name}
# zsh completion for ${name}; in ~/.zshrc, after compinit: source <(${name} completion zsh)
_${name}() {
  local word=\${words[CURRENT]} before=\${words[CURRENT-1]} at=''
  local -a flags subcommands
  local index
  for ((index = 2; index < CURRENT; index++)); do
    case "$at/\${words[index]}" in
${pathCases(commands, 'at')}
    esac
  done
  case $at in
${cases.join('\n')}
  esac
  if [[ $word == -* ]]; then _describe option flags
  elif (( \${#subcommands} )); then _describe command subcommands
  else _files; fi
}
compdef _${name} ${name}`;
}

function fishScript(name: string, commands: readonly CompletedCommand[]): string {
  const lines = commands.flatMap(({ path, subcommands, options, choices }) => {
    // Of a group only its own place, of a command also all that follows it.
    const place = subcommands.length > 0 ? 'group' : 'command';
    const condition = `-n ${quoted(`__${name}_at ${place} ${path}`.trim())}`;
    const words = [
      ...subcommands.map(({ name: word, description }) => [word, description] as const),
      ...choices.map((choice) => [choice, ''] as const),
    ].map(
      ([word, description]) =>
        `complete -c ${name} ${condition} -f -a ${quoted(word)} -d ${quoted(description)}`,
    );
    const flags = options.map((option) => {
      const names = option.names.map((flag) =>
        flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
      );
      const value = !option.takesValue
        ? ''
        : option.choices.length > 0
          ? ` -x -a ${quoted(option.choices.join(' '))}`
          : ' -r';
      return `complete -c ${name} ${condition} ${names.join(' ')}${value} -d ${quoted(option.description)}`;
    });
    return [...words, ...flags];
  });
  return `# fish completion for ${name}; in ~/.config/fish/config.fish: ${name} completion fish | source
function __${name}_at --argument-names place
  set -l words (commandline -opc)
  set -e words[1]
  set -l names (string match -v -- '-*' $words)
  set -l wanted $argv[2..]
  set -l last (count $wanted)
  if test $place = group
    test "$names" = "$wanted"
  else
    test "$names[1..$last]" = "$wanted"
  end
end
${lines.join('\n')}`;
}
