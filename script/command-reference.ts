/** The reference of the command line, made of the commands themselves. */
import type { Command, Option } from 'commander';
import { createProgram } from '../src/cli/program.ts';
import { markdownTable } from './markdown-table.ts';

export function commandReference(): string {
  const program = createProgram({ say: () => undefined, complain: () => undefined });
  return leavesOf(program, [program.name()])
    .map(([command, words]) => sectionOf(command, words))
    .join('\n\n');
}

/** Commands that do something, with the words that call them. */
function leavesOf(command: Command, words: readonly string[]): [Command, readonly string[]][] {
  return command.commands.flatMap((sub) => {
    const called = [...words, sub.name()];
    return sub.commands.length === 0
      ? [[sub, called] as [Command, readonly string[]]]
      : leavesOf(sub, called);
  });
}

function sectionOf(command: Command, words: readonly string[]): string {
  const help = command.createHelp();
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  const call = [...words, ...command.registeredArguments.map((argument) => help.argumentTerm(argument))];
  const usage = command.registeredArguments.map(({ required }, index) => {
    const name = call[words.length + index] ?? '';
    return required ? `<${name}>` : `[${name}]`;
  });
  const parts = [
    `### ${words.join(' ')}`,
    `\`${[...words, ...usage].join(' ')}\`: ${command.description()}.`,
    ...(options.length === 0 ? [] : [markdownTable(['Option', 'What it does'], options.map(rowOf))]),
  ];
  return parts.join('\n\n');
}

function rowOf(option: Option): string[] {
  const choices =
    option.argChoices === undefined ? '' : `: ${option.argChoices.map((name) => `\`${name}\``).join(', ')}`;
  return [`\`${option.flags}\``, `${option.description}${choices}`];
}
