/** The help of every command, and that its examples are such as the command takes. */
import { execFileSync } from 'node:child_process';
import type { Command } from 'commander';
import { OutputRequest } from 'soundpost-contract/output-request';
import { describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { createProgram } from '../../src/cli/program.ts';
import { MAIN } from './command-line.ts';

const program = createProgram({ say: () => undefined, complain: () => undefined });

function leaves(command: Command, words: readonly string[] = []): [name: string, command: Command][] {
  return command.commands.flatMap((sub) => {
    const called = [...words, sub.name()];
    return sub.commands.length === 0
      ? [[called.join(' '), sub] satisfies [string, Command]]
      : leaves(sub, called);
  });
}

function helpOf(command: Command): string {
  let help = '';
  command.configureOutput({ writeOut: (text) => (help += text) });
  command.outputHelp();
  return help;
}

/** The words of each call of soundpost in a line, without what the shell does with them. */
function calls(line: string): string[][] {
  const bare = line.replace(/ # .*$/, '').replaceAll(/[<>] ?[^ (]+/g, '');
  return bare
    .split(/\|(?!\|)|&&|\$\(|<\(|[()"]/)
    .map((part) => part.trim().split(/ +/))
    .flatMap((words) => (words.includes('soundpost') ? [words.slice(words.indexOf('soundpost') + 1)] : []));
}

describe('the help', () => {
  it('of extract has an option for each field of an output', () => {
    const extract = leaves(program).find(([name]) => name === 'extract')?.[1];
    const options = extract?.options.map((option) => option.attributeName());
    const fields = Object.keys(OutputRequest.shape).map((name) =>
      name === 'preserveMetadata' ? 'metadata' : name,
    );
    expect(options).toEqual(expect.arrayContaining(fields));
  });

  it.each(leaves(program))(
    'of %s has examples, which name options and arguments that it takes',
    (name, command) => {
      const [, text = ''] = helpOf(command).split('\nExamples:\n');
      const lines = text.trim().split('\n');
      expect(lines.join()).toContain(`soundpost ${name}`);
      for (const words of lines.flatMap(calls)) {
        const [found, called] =
          leaves(program).find(([path]) => `${words.join(' ')} `.startsWith(`${path} `)) ?? [];
        if (found === undefined || called === undefined) throw new Error(`no command: ${words.join(' ')}`);
        const { operands, unknown } = called.parseOptions(words.slice(found.split(' ').length));
        expect([words, unknown]).toEqual([words, []]);
        expect(operands.length).toBeLessThanOrEqual(called.registeredArguments.length);
      }
    },
  );

  it('of the program names every command, the exit codes and the page', () => {
    const help = helpOf(program);
    for (const { name } of program.commands.map((sub) => ({ name: sub.name() })))
      expect(help).toContain(`\n  ${name}`);
    expect(help).toContain(
      'Exit codes: 0 done, 1 the work failed, 2 wrong usage or configuration, 130 interrupted.',
    );
  });

  it('and the version come on standard output, with exit code 0', () => {
    const run = (...args: string[]) => execFileSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' });
    expect(run('--version')).toBe(`${manifest.version}\n`);
    expect(run('extract', '--help')).toMatch(/^Usage: soundpost extract \[options\] <video>\n/);
  });
});
