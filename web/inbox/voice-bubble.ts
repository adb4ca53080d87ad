/** One voice message: play button, waveform that is also the position slider, time, tick. */
import type { AudioMessage, MessageContent } from 'soundpost-contract/gateway';
import type { InboxMessage } from 'soundpost-contract/inbox';
import type { MessageStatus } from 'soundpost-contract/job';
import { spoken } from '../shared/time.ts';
import { fromBase64, openVoiceNote } from './decrypt.ts';
import { clock, element, icon, svg } from './elements.ts';
import { type MessageFrame, messageFrame } from './message-frame.ts';

const BARS = 64;
const TALLEST = 30;
const SPEEDS = [1, 1.5, 2] as const;

/** Only one message sounds at a time. */
let playing: HTMLAudioElement | null = null;

interface Parts {
  readonly frame: MessageFrame;
  readonly play: HTMLElement;
  readonly position: HTMLInputElement;
  readonly wave: HTMLElement;
  readonly speed: HTMLElement;
  readonly length: HTMLElement;
  readonly caption: HTMLElement;
  readonly fault: HTMLElement;
}

export class VoiceBubble {
  readonly #voice: AudioMessage;
  readonly #onPlayed: () => void;
  readonly #parts: Parts;
  #status: MessageStatus;
  #audio: HTMLAudioElement | null = null;
  #loading = false;
  #speed = 0;

  /** @param onPlayed called once, when the player starts */
  constructor(message: InboxMessage, voice: AudioMessage, onPlayed: () => void) {
    this.#voice = voice;
    this.#onPlayed = onPlayed;
    this.#status = message.status;
    this.#parts = this.#build(message);
  }

  get node(): HTMLElement {
    return this.#parts.frame.item;
  }

  get status(): MessageStatus {
    return this.#status;
  }

  setStatus(status: MessageStatus): void {
    this.#status = status;
    this.#parts.frame.setStatus(status);
  }

  /** A voice message keeps its sound; its caption may change. */
  setContent(content: MessageContent): void {
    this.#parts.caption.textContent = 'audioMessage' in content ? (content.audioMessage.caption ?? '') : '';
    this.#parts.frame.markEdited();
  }

  /** Ends the sound and frees the decrypted file. */
  dispose(): void {
    if (this.#audio !== null) {
      this.#audio.pause();
      URL.revokeObjectURL(this.#audio.src);
    }
  }

  #build(message: InboxMessage): Parts {
    const { seconds, waveform, caption } = this.#voice;
    const play = element('button', {
      type: 'button',
      class: 'play',
      'aria-label': `Play voice message, ${spoken(seconds)}`,
    });
    play.append(icon('play'));
    play.addEventListener('click', () => void this.#toggle());
    const bars = waveBars(fromBase64(waveform));
    const position = element('input', {
      type: 'range',
      class: 'position',
      min: '0',
      max: String(seconds),
      step: '0.1',
      value: '0',
      'aria-label': 'Position',
      'aria-valuetext': `0 of ${spoken(seconds)}`,
    });
    position.addEventListener('input', () => this.#seek(Number(position.value)));
    const speed = element('button', {
      type: 'button',
      class: 'speed',
      hidden: true,
      textContent: '1×',
      'aria-label': 'Speed',
    });
    speed.addEventListener('click', () => this.#faster());
    const length = element('span', { class: 'length', textContent: clock(seconds) });
    const fault = element('p', { class: 'fault', role: 'alert' });
    const wave = element('div', { class: 'wave' }, ...bars, position);
    const captionPlace = element('p', { class: 'text', textContent: caption ?? '' });
    const frame = messageFrame(message, 'Voice message', {
      content: [element('div', { class: 'player' }, play, wave, speed), captionPlace],
      beforeTime: length,
      after: fault,
    });
    return { frame, play, position, wave, speed, length, caption: captionPlace, fault };
  }

  async #toggle(): Promise<void> {
    if (this.#loading) {
      return;
    }
    if (this.#audio !== null && !this.#audio.paused) {
      this.#audio.pause();
      return;
    }
    this.#parts.fault.textContent = '';
    try {
      this.#audio ??= await this.#load();
      if (playing !== null && playing !== this.#audio) {
        playing.pause();
      }
      playing = this.#audio;
      await this.#audio.play();
    } catch (error) {
      this.#parts.fault.textContent = `Cannot play: ${error instanceof Error ? error.message : error}.`;
    }
  }

  async #load(): Promise<HTMLAudioElement> {
    this.#loading = true;
    this.#showButton('wait', 'Loading');
    try {
      const audio = new Audio(URL.createObjectURL(await openVoiceNote(this.#voice)));
      audio.preservesPitch = true;
      audio.currentTime = Number(this.#parts.position.value);
      audio.addEventListener('play', () => this.#onPlay(), { once: true });
      audio.addEventListener('playing', () => this.#follow(audio));
      audio.addEventListener('pause', () => this.#showButton('play', 'Play voice message'));
      audio.addEventListener('ended', () => this.#showPosition(0));
      return audio;
    } finally {
      this.#loading = false;
      this.#showButton('play', 'Play voice message');
    }
  }

  #onPlay(): void {
    this.#parts.speed.hidden = false;
    this.#onPlayed();
  }

  /** Keeps the position in step with the sound while it plays. */
  #follow(audio: HTMLAudioElement): void {
    this.#showButton('pause', 'Pause');
    const step = (): void => {
      if (!audio.paused) {
        this.#showPosition(audio.currentTime);
        requestAnimationFrame(step);
      }
    };
    step();
  }

  #seek(seconds: number): void {
    if (this.#audio !== null) {
      this.#audio.currentTime = seconds;
    }
    this.#showPosition(seconds);
  }

  #faster(): void {
    this.#speed = (this.#speed + 1) % SPEEDS.length;
    const times = SPEEDS[this.#speed] ?? 1;
    if (this.#audio !== null) {
      this.#audio.playbackRate = times;
    }
    this.#parts.speed.textContent = `${times}×`;
    this.#parts.speed.setAttribute('aria-label', `Speed ${times} times`);
  }

  #showPosition(at: number): void {
    const { position, wave, length } = this.#parts;
    const { seconds } = this.#voice;
    position.value = String(at);
    position.setAttribute('aria-valuetext', `${spoken(at)} of ${spoken(seconds)}`);
    wave.style.setProperty('--heard', `${Math.min(100, (at / seconds) * 100)}%`);
    length.textContent = clock(at > 0 ? at : seconds);
  }

  #showButton(name: 'play' | 'pause' | 'wait', label: string): void {
    const { play } = this.#parts;
    play.replaceChildren(icon(name));
    play.classList.toggle('waiting', name === 'wait');
    const { seconds } = this.#voice;
    play.setAttribute('aria-label', name === 'play' ? `${label}, ${spoken(seconds)}` : label);
  }
}

/** The same bars twice: what is still to come, and over it what has been heard, cut off at the position. */
function waveBars(values: Uint8Array): SVGSVGElement[] {
  return ['coming', 'heard'].map((part) =>
    svg(
      'svg',
      {
        class: `bars bars-${part}`,
        viewBox: `0 0 ${BARS * 4} ${TALLEST}`,
        preserveAspectRatio: 'none',
        'aria-hidden': 'true',
      },
      ...Array.from(values, (value, index) => {
        const height = 3 + (Math.min(value, 100) / 100) * (TALLEST - 3);
        return svg('rect', { x: index * 4 + 0.6, y: (TALLEST - height) / 2, width: 2.6, height, rx: 1.3 });
      }),
    ),
  );
}
