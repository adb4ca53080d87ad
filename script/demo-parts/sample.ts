/** A short video of somebody talking, for who has none at hand. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const TEXT =
  'Hello! This is Soundpost. It takes the sound out of a video, and hands it to you as a voice message.';

/**
 * Speech by ffmpeg's own synthesiser where it was built in (Debian's is), by macOS' elsewhere.
 * @param folder for what is needed on the way
 */
export function makeSample(path: string, folder: string): string {
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=size=640x360:rate=25'];
  const video = ['-shortest', '-c:v', 'libx264', '-preset', 'veryfast', '-pix_fmt', 'yuv420p'];
  const audio = ['-c:a', 'aac', '-b:a', '96k', '-ar', '48000'];
  const ffmpeg = (...speech: string[]): void => {
    execFileSync(
      'ffmpeg',
      ['-v', 'error', '-nostdin', ...picture, ...speech, ...video, ...audio, '-y', path],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
  };
  try {
    ffmpeg('-f', 'lavfi', '-i', `flite=text='${TEXT}':voice=slt`);
  } catch {
    const speech = join(folder, 'speech.aiff');
    execFileSync('say', ['-o', speech, TEXT]);
    ffmpeg('-i', speech);
  }
  return path;
}
