/** Shell completion in real shells: bash everywhere, zsh and fish where they are installed. */
import { execFileSync, spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { completionScript } from '../../src/cli/completion.ts';
import { createProgram } from '../../src/cli/program.ts';
import { useDesk } from './command-line.ts';

const program = createProgram({ say: () => undefined, complain: () => undefined });
const has = (shell: string) => spawnSync(shell, ['--version']).status === 0;
const desk = useDesk();

/** What bash would offer for the last word; the words as readline splits them. */
function offered(...words: string[]): string[] {
  const list = ['soundpost', ...words].map((word) => `'${word}'`).join(' ');
  const script = `${completionScript('bash', program)}
    COMP_WORDS=(${list}); COMP_CWORD=${words.length}; _soundpost
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync('bash', ['--norc', '-c', script], { encoding: 'utf8' });
  return output.split('\n').filter((line) => line !== '');
}

describe('in bash', () => {
  it('offers commands and their subcommands', () => {
    expect(offered('ex')).toEqual(['extract']);
    expect(offered('jobs', '')).toEqual(['list', 'show', 'watch', 'download', 'cancel', 'retry']);
    expect(offered('deliveries', 're')).toEqual(['replay', 'resend']);
  });

  it('offers the options of the command that is being typed, long and short', () => {
    expect(offered('extract', 'talk.mp4', '--no')).toEqual(['--no-copy', '--normalize', '--no-metadata']);
    expect(offered('jobs', 'list', '--s')).toEqual(['--server', '--status', '--search']);
    expect(offered('serve', '--')).toEqual(['--help']);
  });

  it('offers what an option or argument may be, also after an equals sign', () => {
    expect(offered('extract', '-f', 'm')).toEqual(['mp3', 'm4a']);
    expect(offered('extract', '--quality', '')).toEqual(['low', 'medium', 'high', 'extreme']);
    expect(offered('extract', '--format', '=', 'fl')).toEqual(['flac']);
    expect(offered('extract', '--format', '=')).toContain('opus');
    expect(offered('completion', 'z')).toEqual(['zsh']);
  });

  it('leaves the rest to names of files', () => {
    expect(offered('extract', 'ta')).toEqual([]);
    expect(offered('extract', '-o', 'jo')).toEqual([]);
    expect(completionScript('bash', program)).toContain(
      'complete -o bashdefault -o default -F _soundpost soundpost',
    );
  });

  it('works as somebody types it at a terminal', async () => {
    const typed = `source <(soundpost completion bash); complete -p soundpost`;
    expect((await desk().shell(typed)).stdout.toString()).toBe(
      'complete -o bashdefault -o default -F _soundpost soundpost\n',
    );
  });
});

describe('in other shells', () => {
  it.runIf(has('zsh'))('zsh reads it', () => {
    const script = `autoload -Uz compinit; compinit -D; ${completionScript('zsh', program)}; whence -w _soundpost`;
    expect(execFileSync('zsh', ['-f', '-c', script], { encoding: 'utf8' })).toContain('_soundpost: function');
  });

  it.runIf(has('fish'))('fish offers commands, options and values', () => {
    const offers = (line: string) =>
      execFileSync(
        'fish',
        ['--no-config', '-c', `${completionScript('fish', program)}\ncomplete -C "${line}"`],
        {
          encoding: 'utf8',
        },
      );
    expect(offers('soundpost jobs ca')).toMatch(/^cancel\t/);
    expect(offers('soundpost extract -f fl')).toMatch(/^flac/);
    expect(offers('soundpost jobs list --sta')).toMatch(/^--status\t/);
  });
});
