// One voice message: play button, waveform that is also the position slider, time, tick.
import { fromBase64, openVoiceNote } from './decrypt.js';
import { messageFrame } from './message-frame.js';
import { clock, element, icon, spoken, svg } from './shared/elements.js';

const BARS = 64;
const TALLEST = 30;
const SPEEDS = [1, 1.5, 2];

/** Only one message sounds at a time. */
let playing = null;

export class VoiceBubble {
  #message;
  #onPlayed;
  #audio = null;
  #loading = false;
  #speed = 0;
  #parts;

  /** @param message as the data route gives it @param {() => void} onPlayed called once, when the player starts */
  constructor(message, onPlayed) {
    this.#message = message;
    this.#onPlayed = onPlayed;
    this.#parts = this.#build();
    this.setStatus(message.status);
  }

  get node() {
    return this.#parts.frame.item;
  }

  get status() {
    return this.#message.status;
  }

  setStatus(status) {
    this.#message.status = status;
    this.#parts.frame.setStatus(status);
  }

  /** A voice message keeps its sound; its caption may change. */
  setContent({ audioMessage }) {
    this.#parts.caption.textContent = audioMessage?.caption ?? '';
    this.#parts.frame.markEdited();
  }

  /** Ends the sound and frees the decrypted file. */
  dispose() {
    if (this.#audio !== null) {
      this.#audio.pause();
      URL.revokeObjectURL(this.#audio.src);
    }
  }

  #build() {
    const { seconds, waveform, caption } = this.#message.message.audioMessage;
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
    const frame = messageFrame(this.#message, 'Voice message', {
      content: [element('div', { class: 'player' }, play, wave, speed), captionPlace],
      beforeTime: length,
      after: fault,
    });
    return { frame, play, position, wave, speed, length, caption: captionPlace, fault };
  }

  async #toggle() {
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
      this.#parts.fault.textContent = `Cannot play: ${error.message}.`;
    }
  }

  async #load() {
    this.#loading = true;
    this.#showButton('wait', 'Loading');
    try {
      const audio = new Audio(URL.createObjectURL(await openVoiceNote(this.#message.message.audioMessage)));
      audio.preservesPitch = true;
      audio.currentTime = Number(this.#parts.position.value);
      audio.addEventListener('play', () => this.#onPlay(), { once: true });
      audio.addEventListener('playing', () => this.#follow());
      audio.addEventListener('pause', () => this.#showButton('play', 'Play voice message'));
      audio.addEventListener('ended', () => this.#showPosition(0));
      return audio;
    } finally {
      this.#loading = false;
      this.#showButton('play', 'Play voice message');
    }
  }

  #onPlay() {
    this.#parts.speed.hidden = false;
    this.#onPlayed();
  }

  /** Keeps the position in step with the sound while it plays. */
  #follow() {
    this.#showButton('pause', 'Pause');
    const step = () => {
      if (!this.#audio.paused) {
        this.#showPosition(this.#audio.currentTime);
        requestAnimationFrame(step);
      }
    };
    step();
  }

  #seek(seconds) {
    if (this.#audio !== null) {
      this.#audio.currentTime = seconds;
    }
    this.#showPosition(seconds);
  }

  #faster() {
    this.#speed = (this.#speed + 1) % SPEEDS.length;
    this.#audio.playbackRate = SPEEDS[this.#speed];
    this.#parts.speed.textContent = `${SPEEDS[this.#speed]}×`;
    this.#parts.speed.setAttribute('aria-label', `Speed ${SPEEDS[this.#speed]} times`);
  }

  #showPosition(at) {
    const { position, wave, length } = this.#parts;
    const { seconds } = this.#message.message.audioMessage;
    position.value = String(at);
    position.setAttribute('aria-valuetext', `${spoken(at)} of ${spoken(seconds)}`);
    wave.style.setProperty('--heard', `${Math.min(100, (at / seconds) * 100)}%`);
    length.textContent = clock(at > 0 ? at : seconds);
  }

  #showButton(name, label) {
    const { play } = this.#parts;
    play.replaceChildren(icon(name));
    play.classList.toggle('waiting', name === 'wait');
    const { seconds } = this.#message.message.audioMessage;
    play.setAttribute('aria-label', name === 'play' ? `${label}, ${spoken(seconds)}` : label);
  }
}

/** The same bars twice: what is still to come, and over it what has been heard, cut off at the position. */
function waveBars(values) {
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
